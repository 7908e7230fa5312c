"""The agent without a memory: what a compression drops from its window is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.records import Answer, MemoryChunk, Query
from memeval.systems.base import ANSWER, MemorySystem, SystemContext, SystemSettings
from memeval.systems.chat.window import Window, check_positive, newest
from memeval.systems.chunk_file import read_chunks, write_chunks


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `native`."""

    max_context_tokens: int = field(default=120_000, metadata=ANSWER)
    """The newest chunks of the window that fit into this many tokens are shown, counted offline."""

    def __post_init__(self) -> None:
        check_positive(max_context_tokens=self.max_context_tokens)


class Native(MemorySystem):
    """Shows its window: everything, until a compression leaves the retained chunks.

    Later chunks join them. It searches nothing, so it shows no retrieval, and has no retrieval
    metric.
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
        self._window = Window()

    def ingest(self, chunk: MemoryChunk) -> None:
        self._window.add(chunk)

    def compress(self, retained: Sequence[MemoryChunk]) -> None:
        # The chunks that leave are dropped on purpose: this is the agent without a memory.
        self._window.cut(retained)

    async def answer(self, query: Query) -> Answer:
        shown, notes = newest(self._window.chunks, self.settings.max_context_tokens)
        reply = await self.parts.reader.answer(query, [chunk.text for chunk in shown])
        return Answer(
            text=reply.text, raw=reply.raw, context_tokens=reply.context_tokens, notes=notes
        )

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._window.chunks)

    def load(self, folder: Path) -> None:
        self._window = Window(read_chunks(folder))
