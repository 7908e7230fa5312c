"""The control that remembers nothing: the reader's knowledge without memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from memeval.records import Answer, CorrectRequest, ForgetRequest, MemoryChunk, Query, Retrieved
from memeval.systems.base import DumpItem, MemorySystem


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

    def forget(self, request: ForgetRequest) -> int:
        return 0

    def correct(self, request: CorrectRequest) -> int:
        return 0

    def probe(self, query: Query, depth: int) -> Sequence[Retrieved]:
        return ()

    def dump(self) -> Iterable[DumpItem]:
        return ()

    async def answer(self, query: Query) -> Answer:
        reply = await self.parts.reader.answer(query, ())
        return reply.as_answer()

    def save(self, folder: Path) -> None:
        pass

    def load(self, folder: Path) -> None:
        pass
