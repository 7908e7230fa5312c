"""The chunks that a system retrieved, as a row keeps them."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from memeval.records import Finite
from memeval.results.fields import Json


class RetrievedChunk(Struct, frozen=True):
    """One chunk that the reader was shown. Its position in the list is its rank."""

    turn_ids: tuple[str, ...] = ()
    """Turns that the chunk covers; empty if the system can't tell."""
    text: str | None = None
    """Reference of the text as shown, see `memeval.results.texts`; None if it is not kept."""
    score: Finite | None = None
    """Higher is better; comparable within one question only."""
    time: datetime | None = None
    """When it was said, if the system knows."""

    def to_json(self) -> Json:
        """The chunk as JSON; a missing score or time is left out."""
        chunk: Json = {"text": self.text, "turn_ids": list(self.turn_ids)}
        if self.score is not None:
            chunk["score"] = self.score
        if self.time is not None:
            chunk["time"] = self.time.isoformat()

        return chunk
