"""The control without retrieval: the whole conversation, as far as it fits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.errors import UserError
from memeval.llm.tokens import count_tokens
from memeval.records import Answer, MemoryChunk, Query
from memeval.systems.base import ANSWER, MemorySystem, SystemContext, SystemSettings
from memeval.systems.chunk_file import read_chunks, write_chunks


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `long_context`."""

    max_context_tokens: int = field(default=120_000, metadata=ANSWER)
    """The newest chunks that fit into this many tokens, counted offline, are shown."""

    def __post_init__(self) -> None:
        if self.max_context_tokens <= 0:
            raise UserError(
                f"system.max_context_tokens must be positive, but is {self.max_context_tokens}"
            )


class LongContext(MemorySystem):
    """Shows all chunks in order of time, cut at the old end to `max_context_tokens`.

    The answer's notes show the cut.
    """

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

    async def answer(self, query: Query) -> Answer:
        first = self._first_shown()
        reply = await self.parts.reader.answer(
            query, [chunk.text for chunk in self._chunks[first:]]
        )
        cut = {"cut_chunks": first, "cut_tokens": sum(self._tokens[:first])} if first else {}
        return Answer(
            text=reply.text, raw=reply.raw, context_tokens=reply.context_tokens, notes=cut
        )

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._chunks)

    def load(self, folder: Path) -> None:
        self.reset()
        for chunk in read_chunks(folder):
            self.ingest(chunk)
