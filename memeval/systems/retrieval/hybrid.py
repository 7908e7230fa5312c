"""Retrieval by meaning and by words: BM25 and dense over the chunks as they were ingested, fused. The strong baseline without a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.records import MemoryChunk, Query, Retrieved
from memeval.retrieval.fusion import RRF_K, FusedIndex
from memeval.retrieval.rerank import Rerank, Reranker, build_reranker, check_rerank
from memeval.systems.base import (
    ANSWER,
    INGEST,
    RUNTIME,
    RecallSystem,
    SystemContext,
    SystemSettings,
)
from memeval.systems.chat.window import check_positive
from memeval.systems.chunk_file import read_chunks, write_chunks


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `hybrid`."""

    index_date: bool = field(default=False, metadata=INGEST)
    """Whether dates are embedded with the chunks; they are shown either way, and never indexed by their words."""
    rrf_k: int = field(default=RRF_K, metadata=ANSWER)
    """Constant of the fusion: the larger, the less the first places weigh."""
    rerank: Rerank = field(default="none", metadata=ANSWER)
    """What reorders the best 2 * top_k chunks."""
    rerank_url: str | None = field(default=None, metadata=ANSWER)
    """Address whose `/rerank` is called."""
    rerank_model: str | None = field(default=None, metadata=ANSWER)
    rerank_key_env: str = field(default="RERANK_API_KEY", metadata=RUNTIME)
    """Environment variable that holds the key; an endpoint on this machine needs none."""

    def __post_init__(self) -> None:
        check_positive(rrf_k=self.rrf_k)
        check_rerank(self)


class Hybrid(RecallSystem):
    """Ranks all chunks by reciprocal rank fusion of BM25 and cosine; optionally reranks the best."""

    settings_type = Settings
    in_thread = False
    settings: Settings
    _index: FusedIndex | None = None
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

    def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)

    def _texts(self) -> tuple[list[str], list[str]]:
        """What is embedded, and what is indexed by its words."""
        contents = [chunk.content for chunk in self._chunks]
        self._reranker = build_reranker(
            self.settings, contents, str(self.parts.extra.get("origin", ""))
        )
        return [chunk.indexed(date=self.settings.index_date) for chunk in self._chunks], contents

    async def consolidate(self) -> None:
        self.close()
        self._index = await FusedIndex.build(self.parts.embedder, *self._texts())

    async def recall(self, query: Query, depth: int) -> list[Retrieved]:
        candidates = 2 * self.parts.top_k
        found = (
            await self._index.search(query.text, max(depth, candidates), self.settings.rrf_k)
            if self._index
            else []
        )
        if self._reranker is None or not found:
            return [self._unit(position, score) for position, score in found[:depth]]
        best = found[0][1]  # fused scores are tiny: the first one counts as a similarity of 1
        scaled = [(position, score / best) for position, score in found[:candidates]]
        units = [
            self._unit(position, score)
            for position, score in await self._reranker.reorder(query.text, scaled)
        ]
        units += [self._unit(position, None) for position, _ in found[candidates:]]
        return units[:depth]

    def _unit(self, position: int, score: float | None) -> Retrieved:
        chunk = self._chunks[position]
        return Retrieved(chunk.text, chunk.turn_ids, score)

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._chunks)
        if self._index:
            self._index.save(folder)

    async def load(self, folder: Path) -> None:
        self.close()
        self._chunks = read_chunks(folder)
        self._index = await FusedIndex.load(folder, self.parts.embedder, *self._texts())

    def close(self) -> None:
        if self._index:
            self._index.close()
        if self._reranker:
            self._reranker.close()
        self._index = self._reranker = None
