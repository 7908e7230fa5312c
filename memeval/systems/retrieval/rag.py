"""CogCanvas' retrieval-augmented generation: chunks of a fixed size, optionally reranked."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memeval.errors import UserError
from memeval.records import MemoryChunk, Query
from memeval.retrieval.dense import DenseIndex
from memeval.retrieval.rechunking import rechunk
from memeval.systems.base import ANSWER, INGEST, POSITIVE
from memeval.systems.indexed import Ranked
from memeval.systems.reranking import RerankedSettings, RerankingSystem


@dataclass(frozen=True)
class RagSettings(RerankedSettings):
    """Settings of `rag`. A reranker reorders the best 2 * top_k chunks."""

    # Both numbers are those of CogCanvas' baseline.
    chunk_size: int = field(default=512, metadata=INGEST | POSITIVE)
    """Maximum characters of a chunk, which ends between words."""
    overlap: int = field(default=100, metadata=INGEST)
    """Characters that a chunk shares with the previous one, up to the next word."""
    index_date: bool = field(default=False, metadata=INGEST)
    """Whether dates are embedded with the chunks; they are shown either way."""

    show_window: bool = field(default=False, metadata=ANSWER)
    """Whether to also show the agent's window, which is everything before any compression."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.overlap < self.chunk_size:
            raise UserError(
                "system.overlap must be at least 0 and below system.chunk_size "
                f"({self.chunk_size}), but is {self.overlap}"
            )


class Rag(RerankingSystem[DenseIndex]):
    """The nearest chunks of a fixed size. Compressions remove none of them."""

    settings_type = RagSettings
    keeps_window = True
    settings: RagSettings
    _cut: Sequence[MemoryChunk] = ()
    """Chunks of a fixed size, replacing the ingested ones."""

    def texts(self) -> list[str]:
        return [chunk.indexed(date=self.settings.index_date) for chunk in self._cut]

    async def build(self, saved: Path | None) -> DenseIndex:
        self._cut = rechunk(self.chunks, self.settings.chunk_size, self.settings.overlap)
        self.rerank_over([chunk.content for chunk in self._cut])
        return await DenseIndex.open(self.parts.embedder, self.texts(), saved, self.index)

    def entries(self) -> Sequence[MemoryChunk]:
        return self._cut

    async def rank(self, index: DenseIndex, query: Query, depth: int) -> Ranked:
        candidates = 2 * self.parts.top_k
        ranked = await index.search(query.text, max(depth, candidates))
        if self.reordering is None:
            return ranked[:depth]

        reordered = await self.reordering.reorder_best(query.text, ranked, candidates)
        return reordered[:depth]
