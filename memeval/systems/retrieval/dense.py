"""Dense retrieval over the chunks as they were ingested: no rerank, no chunking of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.records import MemoryChunk, Query, Retrieved
from memeval.retrieval.dense import DenseIndex
from memeval.systems.base import INGEST, RecallSystem, SystemContext, SystemSettings
from memeval.systems.chunk_file import read_chunks, write_chunks


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `embedding_only`."""

    index_date: bool = field(default=False, metadata=INGEST)
    """Whether dates are embedded with the chunks; they are shown either way."""


class Dense(RecallSystem):
    """The nearest chunks in Chroma under the cell's embedder."""

    settings_type = Settings
    settings: Settings
    in_thread = False
    _index: DenseIndex | None = None

    def __init__(self, settings: Settings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self.reset()

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        self.close()
        self._chunks: list[MemoryChunk] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)

    def _texts(self) -> list[str]:
        return [chunk.indexed(date=self.settings.index_date) for chunk in self._chunks]

    async def consolidate(self) -> None:
        self.close()
        self._index = await DenseIndex.build(self.parts.embedder, self._texts())

    async def recall(self, query: Query, depth: int) -> list[Retrieved]:
        found = await self._index.search(query.text, depth) if self._index else []
        return [
            Retrieved(self._chunks[position].text, self._chunks[position].turn_ids, score)
            for position, score in found
        ]

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._chunks)
        if self._index:
            self._index.save(folder)

    async def load(self, folder: Path) -> None:
        self.close()
        self._chunks = read_chunks(folder)
        self._index = await DenseIndex.load(folder, self.parts.embedder, self._texts())

    def close(self) -> None:
        if self._index:
            self._index.close()
        self._index = None
