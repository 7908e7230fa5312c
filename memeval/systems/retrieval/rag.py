"""Retrieval-augmented generation as CogCanvas defines it: passages of a fixed size, embedded, optionally reranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.errors import UserError
from memeval.records import MemoryChunk, Query, Retrieved
from memeval.retrieval.dense import DenseIndex
from memeval.retrieval.passages import passages
from memeval.retrieval.rerank import Rerank, Reranker, build_reranker, check_rerank
from memeval.systems.base import (
    ANSWER,
    INGEST,
    RUNTIME,
    RecallSystem,
    SystemContext,
    SystemSettings,
)
from memeval.systems.chunk_file import read_chunks, read_window, write_chunks


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `rag`."""

    chunk_size: int = field(default=512, metadata=INGEST)
    """Characters of a passage at most; it ends between words."""
    overlap: int = field(default=100, metadata=INGEST)
    """Characters that a passage shares with the one before, up to the next word."""
    index_date: bool = field(default=False, metadata=INGEST)
    """Whether dates are embedded with the passages; they are shown either way."""
    rerank: Rerank = field(default="none", metadata=ANSWER)
    """What reorders the best 2 * top_k passages."""
    rerank_url: str | None = field(default=None, metadata=ANSWER)
    """Address whose `/rerank` is called."""
    rerank_model: str | None = field(default=None, metadata=ANSWER)
    rerank_key_env: str = field(default="RERANK_API_KEY", metadata=RUNTIME)
    """Environment variable that holds the key; an endpoint on this machine needs none."""

    def __post_init__(self) -> None:
        if self.chunk_size <= 0:
            raise UserError(f"system.chunk_size must be positive, but is {self.chunk_size}")
        if not 0 <= self.overlap < self.chunk_size:
            raise UserError(
                f"system.overlap must be at least 0 and below system.chunk_size ({self.chunk_size}), but is {self.overlap}"
            )
        check_rerank(self)


class Rag(RecallSystem):
    """The nearest passages in Chroma; after a compression, what the agent's window still holds is shown as well."""

    settings_type = Settings
    in_thread = False
    settings: Settings
    _index: DenseIndex | None = None
    _reranker: Reranker | None = None

    def __init__(self, settings: Settings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self.reset()

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        self.close()
        self._chunks: list[MemoryChunk] = []
        self._passages: list[MemoryChunk] = []
        self._window: list[MemoryChunk] | None = None

    def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)
        if self._window is not None:
            self._window.append(chunk)

    def compress(self, retained: Sequence[MemoryChunk]) -> None:
        self._window = list(retained)

    def window(self) -> Sequence[MemoryChunk]:
        return self._window or ()

    def _cut(self) -> list[str]:
        self._passages = passages(self._chunks, self.settings.chunk_size, self.settings.overlap)
        origin = str(self.parts.extra.get("origin", ""))
        self._reranker = build_reranker(
            self.settings, [passage.content for passage in self._passages], origin
        )
        return [passage.indexed(date=self.settings.index_date) for passage in self._passages]

    async def consolidate(self) -> None:
        self.close()
        self._index = await DenseIndex.build(self.parts.embedder, self._cut())

    async def recall(self, query: Query, depth: int) -> list[Retrieved]:
        candidates = 2 * self.parts.top_k
        found = await self._index.search(query.text, max(depth, candidates)) if self._index else []
        if self._reranker is None:
            return [self._unit(position, score) for position, score in found[:depth]]
        best = await self._reranker.reorder(query.text, found[:candidates])
        units = [self._unit(position, score) for position, score in best]
        units += [self._unit(position, None) for position, _ in found[candidates:]]
        return units[:depth]

    def _unit(self, position: int, score: float | None) -> Retrieved:
        passage = self._passages[position]
        return Retrieved(passage.text, passage.turn_ids, score)

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._chunks, self._window)
        if self._index:
            self._index.save(folder)

    async def load(self, folder: Path) -> None:
        self.close()
        self._chunks = read_chunks(folder)
        self._window = read_window(folder)
        self._index = await DenseIndex.load(folder, self.parts.embedder, self._cut())

    def close(self) -> None:
        if self._index:
            self._index.close()
        if self._reranker:
            self._reranker.close()
        self._index = self._reranker = None
