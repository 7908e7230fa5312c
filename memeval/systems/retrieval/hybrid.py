"""Dense retrieval and BM25 over the ingested chunks, fused: the baseline without a model."""

from dataclasses import dataclass, field
from pathlib import Path

from memeval.records import Query
from memeval.retrieval.fusion import RRF_K, FusedIndex
from memeval.systems.base import ANSWER, INGEST, POSITIVE
from memeval.systems.fact_keys import FactKeyedSystem, FactKeySettings
from memeval.systems.indexed import Ranked
from memeval.systems.reranking import RerankedSettings, RerankingSystem


@dataclass(frozen=True)
class HybridSettings(RerankedSettings, FactKeySettings):
    """Settings of `hybrid`. A reranker reorders the best 2 * top_k chunks."""

    index_date: bool = field(default=False, metadata=INGEST)
    """Whether dates are embedded; they are shown either way, and never indexed by words."""
    rrf_k: int = field(default=RRF_K, metadata=ANSWER | POSITIVE)
    """Constant of the fusion: larger values give the top ranks less weight."""


class Hybrid(FactKeyedSystem[FusedIndex], RerankingSystem[FusedIndex]):
    """Ranks all chunks by reciprocal rank fusion of BM25 and cosine; may rerank the best."""

    settings_type = HybridSettings
    settings: HybridSettings

    async def build(self, saved: Path | None) -> FusedIndex:
        contents = [chunk.content for chunk in self.chunks]
        self.rerank_over(contents)
        # The reranker reads the shown text; facts only help to find it.
        words = self.expand(contents)
        return await FusedIndex.open(self.parts.embedder, self.texts(), words, saved, self.index)

    async def rank(self, index: FusedIndex, query: Query, depth: int) -> Ranked:
        # CogCanvas' RAG reranks twice as many chunks as it shows; this baseline does the same.
        candidates = 2 * self.parts.top_k
        ranked = await index.search(query.text, max(depth, candidates), self.settings.rrf_k)
        if self.reordering is None or not ranked:
            return ranked[:depth]

        # Fused scores are tiny, so they are scaled: the first one counts as a similarity of 1.
        best = ranked[0][1]
        scaled = [(position, score / best) for position, score in ranked]
        reordered = await self.reordering.reorder_best(query.text, scaled, candidates)
        return reordered[:depth]
