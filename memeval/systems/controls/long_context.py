"""The control without retrieval: the whole conversation, as far as it fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.llm.tokens import count_tokens
from memeval.records import Answer, CorrectRequest, ForgetRequest, MemoryChunk, Query, Retrieved
from memeval.systems.base import (
    ANSWER,
    MemorySystem,
    SystemContext,
    SystemSettings,
    check_positive,
    latest_first,
)
from memeval.systems.chunk_file import read_chunks, write_chunks
from memeval.systems.forgetting import corrected, count_changed, without


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `long_context`, `full_history` and `native`."""

    max_context_tokens: int = field(default=120_000, metadata=ANSWER)
    """Tokens, counted offline, that the newest chunks may have; of `native` those shown."""

    def __post_init__(self) -> None:
        check_positive(max_context_tokens=self.max_context_tokens)


class LongContext(MemorySystem):
    """Shows all chunks in order, cut at the old end to `max_context_tokens`."""

    settings_type = Settings
    in_thread = False
    settings: Settings

    def __init__(self, settings: Settings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self.reset()

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        self._chunks: list[MemoryChunk] = []
        self._tokens: list[int] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)
        self._tokens.append(count_tokens(chunk.text))

    def _first_shown(self) -> int:
        room = self.settings.max_context_tokens
        # From the newest on: in BEAM's runner, too, it is the oldest messages that are dropped.
        for position in reversed(range(len(self._chunks))):
            room -= self._tokens[position]
            if room < 0:
                return position + 1

        return 0

    def forget(self, request: ForgetRequest) -> int:
        before = len(self._chunks)
        self._take(without(self._chunks, request))
        return before - len(self._chunks)

    def correct(self, request: CorrectRequest) -> int:
        before = self._chunks
        self._take(corrected(before, request))
        return count_changed(before, self._chunks)

    def probe(self, query: Query, depth: int) -> Sequence[Retrieved]:
        """All that a question is shown: nothing is ranked, and so nothing is cut at `depth`."""
        shown = self._chunks[self._first_shown() :]
        return [Retrieved(text=chunk.text, turn_ids=chunk.turn_ids) for chunk in shown]

    def _take(self, chunks: Iterable[MemoryChunk]) -> None:
        self.reset()
        for chunk in chunks:
            self.ingest(chunk)

    async def answer(self, query: Query) -> Answer:
        first = self._first_shown()
        shown = [chunk.text for chunk in self._chunks[first:]]
        reply = await self.parts.reader.answer(query, shown, order=latest_first(len(shown)))
        cut = {"cut_chunks": first, "cut_tokens": sum(self._tokens[:first])} if first else {}
        return Answer(
            text=reply.text, raw=reply.raw, context_tokens=reply.context_tokens, notes=cut
        )

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._chunks)

    def load(self, folder: Path) -> None:
        self._take(read_chunks(folder))
