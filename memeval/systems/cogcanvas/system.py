"""CogCanvas (arXiv 2601.00821): typed artifacts with verbatim quotes in a graph, retrieved by vectors, words and neighbours.

Artifacts are extracted from every unit, whatever leaves the window: a compression only drops turns, and what was noted of them stays. As
extraction sees turns and not the window, it makes no difference that all units are read in batches at the end of the ingest.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from memeval.embedding.contract import Embedder
from memeval.errors import UserError
from memeval.prompts import load_builtin
from memeval.records import Answer, IngestHealth, MemoryChunk, Query, Retrieved
from memeval.retrieval.bm25 import Bm25Index
from memeval.retrieval.rerank import Rerank, Reranker, build_reranker, check_rerank
from memeval.systems.base import (
    ANSWER,
    INGEST,
    RUNTIME,
    RecallSystem,
    SystemContext,
    SystemSettings,
)
from memeval.systems.chunk_file import read_window, write_chunks
from memeval.systems.cogcanvas.artifacts import Artifact, read_artifacts, write_artifacts
from memeval.systems.cogcanvas.extraction import Extractor, batches
from memeval.systems.cogcanvas.graph import Canvas
from memeval.systems.cogcanvas.retrieval import hybrid, shares

if TYPE_CHECKING:
    from memeval.embedding.contract import Vectors
    from memeval.systems.cogcanvas.retrieval import Scores

TEMPLATE = "extract"
VECTORS_FILE = "vectors.npy"
TOLD = ("unreadable", "cut", "dropped")
"""What each answer's notes tell of the extraction, where it happened."""


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `cogcanvas` and of all its variants."""

    batch_units: int = field(default=10, metadata=INGEST)
    """Units that one call reads at most."""
    batch_tokens: int = field(default=1000, metadata=INGEST)
    """Tokens of a call's units at most; a longer unit is read alone."""
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
    rerank: Rerank = field(default="lexical", metadata=ANSWER)
    """What reorders the best `rerank_candidates`."""
    rerank_candidates: int = field(default=30, metadata=ANSWER)
    rerank_url: str | None = field(default=None, metadata=ANSWER)
    """Address whose `/rerank` is called."""
    rerank_model: str | None = field(default=None, metadata=ANSWER)
    rerank_key_env: str = field(default="RERANK_API_KEY", metadata=RUNTIME)
    """Environment variable that holds the key; an endpoint on this machine needs none."""
    cot: bool = field(default=True, metadata=ANSWER)
    """Whether it answers step by step; else shortly."""
    top_k: int | None = field(default=None, metadata=ANSWER)
    """Artifacts at most, where that is less than the cell's `top_k`."""

    def __post_init__(self) -> None:
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
                f"system.reference_threshold must be above 0 and at most 1, but is {self.reference_threshold}"
            )
        check_rerank(self)


class CogCanvas(RecallSystem):
    """The nearest artifacts and their neighbours; after a compression, what the agent's window still holds is shown as well."""

    settings_type = Settings
    in_thread = False
    settings: Settings
    _reranker: Reranker | None = None

    def __init__(self, settings: Settings, parts: SystemContext) -> None:
        super().__init__(
            settings, replace(parts, top_k=min(parts.top_k, settings.top_k or parts.top_k))
        )
        self.reset()

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        return (TEMPLATE,)

    @classmethod
    def answer_style(cls, settings: Any) -> str | None:
        return "cot" if settings.cot else "short"

    def reset(self) -> None:
        self._units: list[MemoryChunk] = []
        self._window: list[MemoryChunk] | None = None
        self._counts: dict[str, int] = {}
        self._lost = 0
        self._artifacts: tuple[Artifact, ...] = ()
        self.close()

    def ingest(self, chunk: MemoryChunk) -> None:
        self._units.append(chunk)
        if self._window is not None:
            self._window.append(chunk)

    def compress(self, retained: Sequence[MemoryChunk]) -> None:
        self._window = list(retained)

    def window(self) -> Sequence[MemoryChunk]:
        return self._window or ()

    async def consolidate(self) -> None:
        extractor = Extractor(
            self.parts.model, load_builtin(TEMPLATE), self.parts.seed, self.settings.gleaning
        )
        cut = batches(self._units, self.settings.batch_units, self.settings.batch_tokens)
        loading = asyncio.create_task(
            asyncio.to_thread(_load_libraries)
        )  # in the time that goes by with waiting for the model
        artifacts = await extractor.extract(cut)
        await loading
        self._counts, self._lost = dict(extractor.counts), len(extractor.lost)
        texts = [artifact.search_text for artifact in artifacts]
        embedder = await asyncio.to_thread(self.parts.embedder.fitted, texts)
        await asyncio.to_thread(self._index, artifacts, await embedder.embed(texts), embedder)

    def health(self) -> IngestHealth:
        """Units whose replies were of no use, after they were asked for once more."""
        asked = len(self._units)
        return IngestHealth(asked=asked, stored=asked - self._lost, lost=self._lost)

    def _index(self, artifacts: Sequence[Artifact], vectors: Vectors, embedder: Embedder) -> None:
        """Everything that answers need, made of artifacts and their vectors alone; in a thread, as it takes a while."""
        texts = [artifact.search_text for artifact in artifacts]
        self._artifacts, self._vectors, self._embedder = tuple(artifacts), vectors, embedder
        self._shown = [artifact.unscored for artifact in artifacts]
        self.close()
        self._keywords = Bm25Index(texts)
        self._reranker = build_reranker(
            self.settings, texts, str(self.parts.extra.get("origin", ""))
        )
        self._canvas = Canvas(artifacts, vectors, self.settings.reference_threshold)

    async def recall(self, query: Query, depth: int) -> list[Retrieved]:
        """The full ranking; artifacts below `depth` are there for the metrics and carry no score."""
        if not self._artifacts:
            return []
        ranked = await self._reranked(query.text, self._expanded(await self._scores(query.text)))
        best = [replace(self._shown[place], score=score) for place, score in ranked[:depth]]
        return best + [self._shown[place] for place, _ in ranked[depth:]]

    async def _scores(self, text: str) -> Scores:
        (vector,) = await self._embedder.embed([text])
        dense = (self._vectors @ vector).astype(np.float64)
        return (
            hybrid(dense, self._keywords.scores(text))
            if self.settings.retrieval == "hybrid"
            else shares(dense)
        )

    def _expanded(self, scores: Scores) -> list[tuple[int, float]]:
        """All artifacts, best first, neighbours of the best ones with what they get from them."""
        settings = self.settings
        if settings.graph:
            seeds = np.zeros_like(scores)
            best = np.argsort(-scores, kind="stable")[: settings.graph_seeds]
            seeds[best] = scores[best]
            scores = np.maximum(
                scores,
                self._canvas.expand(seeds, settings.graph_hops, temporal=settings.temporal_edges),
            )
        order = np.argsort(-scores, kind="stable")
        return list(zip(order.tolist(), scores[order].tolist(), strict=True))

    async def _reranked(
        self, text: str, ranked: list[tuple[int, float]]
    ) -> list[tuple[int, float]]:
        if self._reranker is None:
            return ranked
        count = self.settings.rerank_candidates
        return await self._reranker.reorder(text, ranked[:count]) + ranked[count:]

    async def answer(self, query: Query) -> Answer:
        """The base's answer, and in its notes what the extraction lost."""
        lost = {name: self._counts[name] for name in TOLD if self._counts.get(name)}
        answer = await super().answer(query)
        return replace(answer, notes={**answer.notes, "extraction": lost}) if lost else answer

    def save(self, folder: Path) -> None:
        write_artifacts(folder, self._artifacts, self._counts)
        write_chunks(folder, (), self._window)
        np.save(folder / VECTORS_FILE, self._vectors, allow_pickle=False)

    async def load(self, folder: Path) -> None:
        artifacts, self._counts = read_artifacts(folder)
        self._window = read_window(folder)
        vectors = np.load(folder / VECTORS_FILE, allow_pickle=False)
        if len(vectors) != len(artifacts):
            raise ValueError(
                f"{folder / VECTORS_FILE} holds {len(vectors)} vectors for {len(artifacts)} artifacts"
            )
        embedder = await asyncio.to_thread(
            self.parts.embedder.fitted, [artifact.search_text for artifact in artifacts]
        )
        await asyncio.to_thread(self._index, artifacts, vectors, embedder)

    def close(self) -> None:
        if self._reranker:
            self._reranker.close()
        self._reranker = None


def _load_libraries() -> None:
    """Loads what the indexes are built with; half a second at the first time."""
    for name in ("networkx", "rank_bm25"):
        importlib.import_module(name)
