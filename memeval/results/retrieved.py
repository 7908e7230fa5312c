"""The chunks that a system retrieved, as a row keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memeval.results.fields import Fields, Json, is_count


@dataclass(frozen=True, slots=True)
class RetrievedChunk:
    """One chunk that the reader was shown. Its position in the list is its rank."""

    turn_ids: tuple[str, ...]
    """Turns that the chunk covers; empty if the system can't tell."""
    text: str | None = None
    """Reference of the text as shown, see `memeval.results.texts`; None if it is not kept."""
    score: float | None = None
    """Higher is better; comparable within one question only."""
    time: datetime | None = None
    """When it was said, where the system knows."""

    @classmethod
    def from_json(cls, value: Any, row: Fields) -> RetrievedChunk:
        """A chunk."""
        if not isinstance(value, dict):
            raise row.wrong("retrieved")

        chunk = Fields(value, "retrieved.")
        return cls(
            turn_ids=chunk.strings("turn_ids"),
            text=chunk.string_or_none("text"),
            score=chunk.number_or_none("score"),
            time=chunk.time_or_none("time"),
        )

    def to_json(self) -> Json:
        chunk: Json = {"text": self.text, "turn_ids": list(self.turn_ids)}
        if self.score is not None:
            chunk["score"] = self.score
        if self.time is not None:
            chunk["time"] = self.time.isoformat()

        return chunk


def retrieved_from(row: Fields) -> tuple[RetrievedChunk, ...] | None:
    """The member `retrieved` of a row or a record."""
    chunks = row.raw("retrieved")
    if chunks is None:
        return None
    if not isinstance(chunks, list):
        raise row.wrong("retrieved")

    return tuple(RetrievedChunk.from_json(chunk, row) for chunk in chunks)


def short_positions(positions: tuple[int, ...]) -> int | list[int]:
    """The positions of one chunk's turns; most chunks have one turn, and are written as its
    position.
    """
    return positions[0] if len(positions) == 1 else list(positions)


def ranking_from(row: Fields) -> tuple[tuple[int, ...], ...] | None:
    chunks = row.raw("ranking")
    if chunks is None:
        return None
    if not isinstance(chunks, list):
        raise row.wrong("ranking")

    ranking = []
    for chunk in chunks:
        positions = chunk if isinstance(chunk, list) else [chunk]
        if not all(map(is_count, positions)):
            raise row.wrong("ranking")

        ranking.append(tuple(positions))

    return tuple(ranking)
