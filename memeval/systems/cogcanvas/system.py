"""CogCanvas (arXiv 2601.00821): typed artifacts with verbatim quotes in a graph, retrieved by
vectors, words and neighbours.

Artifacts are extracted from every chunk, whatever leaves the window: a compression drops turns, and
what was noted of them stays. Extraction sees turns and not the window, so it makes no difference
that all chunks are read in batches at the end of the ingest.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from memeval.errors import UserError
from memeval.prompts import load_builtin
from memeval.records import Answer, IngestHealth, Query, Retrieved
from memeval.systems.base import ANSWER, INGEST, DumpItem, SystemContext
from memeval.systems.cogcanvas.artifacts import Artifact, read_artifacts
from memeval.systems.cogcanvas.extraction import Extractor, batches
from memeval.systems.cogcanvas.index import CanvasIndex, read_vectors
from memeval.systems.indexed import Ranked
from memeval.systems.reranking import RerankedSettings, RerankingSystem

TEMPLATE = "extract"
NOTED = ("unreadable", "cut", "dropped")
"""Counts of the extraction that each answer's notes show, where they are not 0."""


@dataclass(frozen=True)
class Settings(RerankedSettings):
    """Settings of `cogcanvas` and of all its variants."""

    batch_units: int = field(default=10, metadata=INGEST)
    """Chunks that one call reads at most."""
    batch_tokens: int = field(default=1000, metadata=INGEST)
    """Tokens of a call's chunks at most; a longer chunk is read alone."""
    gleaning: bool = field(default=True, metadata=INGEST)
    """Whether each batch is read a second time, for what the first reading missed."""
    graph: bool = field(default=True, metadata=ANSWER)
    """Whether neighbours in the graph are found too."""
    graph_hops: int = field(default=3, metadata=ANSWER)
    """How far out neighbours are found; each hop leaves 0.8 of the score."""
    graph_seeds: int = field(default=10, metadata=ANSWER)
    """Best artifacts whose neighbours are found."""
    reference_threshold: float = field(default=0.5, metadata=ANSWER)
    """Least cosine of two artifacts of which one refers to the other."""
    temporal_edges: bool = field(default=True, metadata=ANSWER)
    """Whether edges between events in the order of time count."""
    retrieval: Literal["dense", "hybrid"] = field(default="hybrid", metadata=ANSWER)
    """What ranks artifacts: vectors, or 0.7 of vectors and 0.3 of BM25."""
    rerank: str = field(default="lexical", metadata=ANSWER)
    """What reorders the best `rerank_candidates`."""
    rerank_candidates: int = field(default=30, metadata=ANSWER)
    """Artifacts that a rerank reorders."""
    cot: bool = field(default=True, metadata=ANSWER)
    """Whether it answers step by step; else briefly."""
    top_k: int | None = field(default=None, metadata=ANSWER)
    """Artifacts at most, where that is less than the cell's `top_k`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (
            "batch_units",
            "batch_tokens",
            "graph_hops",
            "graph_seeds",
            "rerank_candidates",
            "top_k",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"system.{name} must be positive, but is {value}")

        if not 0 < self.reference_threshold <= 1:
            raise UserError(
                "system.reference_threshold must be above 0 and at most 1, "
                f"but is {self.reference_threshold}"
            )


class CogCanvas(RerankingSystem[CanvasIndex]):
    """The nearest artifacts and their neighbours.

    After a compression, the agent's window is shown as well.
    """

    settings_type = Settings
    shows_window = True
    saves_chunks = False
    settings: Settings

    def __init__(self, settings: Settings, parts: SystemContext) -> None:
        top_k = min(parts.top_k, settings.top_k or parts.top_k)
        super().__init__(settings, replace(parts, top_k=top_k))

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return True

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        return (TEMPLATE,)

    @classmethod
    def answer_style(cls, settings: Any) -> str | None:
        return "cot" if settings.cot else "short"

    def reset(self) -> None:
        super().reset()
        self._lost = 0

    async def build(self, saved: Path | None) -> CanvasIndex:
        if saved is None:
            artifacts, counts = await self._extract()
        else:
            artifacts, counts = read_artifacts(saved)

        texts = [artifact.search_text for artifact in artifacts]
        embedder = await asyncio.to_thread(self.parts.embedder.fitted, texts)
        if saved is None:
            vectors = await embedder.embed(texts)
        else:
            vectors = read_vectors(saved, len(artifacts))

        await asyncio.to_thread(self.rerank_over, texts)
        return await asyncio.to_thread(
            CanvasIndex.over,
            artifacts,
            counts,
            vectors,
            embedder,
            self.settings.reference_threshold,
        )

    async def _extract(self) -> tuple[list[Artifact], dict[str, int]]:
        """The artifacts of the conversation, and what their extraction counted."""
        extractor = Extractor(
            self.parts.model, load_builtin(TEMPLATE), self.parts.seed, self.settings.gleaning
        )
        cut = batches(self.chunks, self.settings.batch_units, self.settings.batch_tokens)

        # Libraries are loaded while the model works.
        loading = asyncio.create_task(asyncio.to_thread(_load_libraries))
        artifacts = await extractor.extract(cut)
        await loading

        self._lost = len(extractor.lost)
        return artifacts, dict(extractor.counts)

    def entries(self) -> list[Retrieved]:
        return [artifact.unscored for artifact in self._artifacts]

    @property
    def _artifacts(self) -> Sequence[Artifact]:
        return self.index.artifacts if self.index else ()

    def health(self) -> IngestHealth:
        """Chunks whose replies were of no use, after a second request."""
        asked = len(self.chunks)
        return IngestHealth(asked=asked, stored=asked - self._lost, lost=self._lost)

    def dump(self) -> list[DumpItem]:
        return [artifact.row for artifact in self._artifacts]

    async def rank(self, index: CanvasIndex, query: Query, depth: int) -> Ranked:
        """The full ranking. Artifacts below `depth` are there for the metrics, without a score."""
        if not index.artifacts:
            return []

        settings = self.settings
        scores = await index.scores(query.text, words=settings.retrieval == "hybrid")
        if settings.graph:
            scores = index.with_neighbours(
                scores,
                settings.graph_seeds,
                settings.graph_hops,
                temporal=settings.temporal_edges,
            )

        order = np.argsort(-scores, kind="stable")
        ranked = list(zip(order.tolist(), scores[order].tolist(), strict=True))
        if self.reordering is not None:
            count = settings.rerank_candidates
            ranked = await self.reordering.reorder(query.text, ranked[:count]) + ranked[count:]

        return [*ranked[:depth], *((position, None) for position, _ in ranked[depth:])]

    async def answer(self, query: Query) -> Answer:
        """The base's answer, with what the extraction lost in its notes."""
        answer = await super().answer(query)
        counts = self.index.counts if self.index else {}
        lost = {name: counts[name] for name in NOTED if counts.get(name)}
        return replace(answer, notes={**answer.notes, "extraction": lost}) if lost else answer


def _load_libraries() -> None:
    """Loads what the indexes are built with, which takes half a second the first time."""
    for name in ("networkx", "rank_bm25"):
        importlib.import_module(name)
