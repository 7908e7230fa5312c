"""The control without memory: it measures what the reader knows anyway."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from memeval.records import Answer, CorrectRequest, ForgetRequest, MemoryChunk, Query, Retrieved
from memeval.systems.base import DumpItem, QuickSystem


class EmptySystem(QuickSystem):
    """A system that keeps nothing."""

    def reset(self) -> None:
        pass

    def ingest(self, chunk: MemoryChunk) -> None:
        pass

    def save(self, folder: Path) -> None:
        pass

    def load(self, folder: Path) -> None:
        pass


class NoMemory(EmptySystem):
    """Drops every chunk and asks the reader without context."""

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
