"""The control that remembers nothing: what the reader knows without memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memeval.records import Answer, MemoryChunk, Query
from memeval.systems.base import MemorySystem


class NoMemory(MemorySystem):
    """Drops every chunk and asks the reader without context."""

    in_thread = False

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        pass

    def ingest(self, chunk: MemoryChunk) -> None:
        pass

    async def answer(self, query: Query) -> Answer:
        reply = await self.parts.reader.answer(query, ())
        return Answer(text=reply.text, raw=reply.raw, context_tokens=reply.context_tokens)

    def save(self, folder: Path) -> None:
        pass

    def load(self, folder: Path) -> None:
        pass
