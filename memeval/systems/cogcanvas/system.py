"""CogCanvas (arXiv 2601.00821): typed artifacts with verbatim quotes in a graph, retrieved by
vectors, words and neighbours.

The rules and constants are those of the published system; docs/systems/cogcanvas.md says where
memeval differs on purpose.

Artifacts are extracted from every chunk, whatever leaves the window: a compression drops turns, and
what was noted of them stays. Extraction sees turns and not the window, so it makes no difference
that all chunks are read in batches at the end of the ingest.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from memeval.errors import UserError
from memeval.prompts import load_builtin
from memeval.records import Answer, IngestHealth, Query, Retrieved
from memeval.systems.base import ANSWER, INGEST, DumpItem, SystemContext
from memeval.systems.cogcanvas.artifacts import Artifact, read_artifacts
from memeval.systems.cogcanvas.extraction import ExtractionRules, Extractor, batches
from memeval.systems.cogcanvas.graph import GraphRules
from memeval.systems.cogcanvas.index import CanvasIndex, read_vectors
from memeval.systems.cogcanvas.retrieval import adapted_top_k, within_budget
from memeval.systems.indexed import Ranked
from memeval.systems.reranking import RerankedSettings, RerankingSystem

TEMPLATE = "extract"
GLEAN_TEMPLATE = "glean"
NOTED = ("unreadable", "cut", "dropped", "unknown_type")
"""Counts of the extraction that each answer's notes show, where they are not 0."""
POSITIVE = (
    "batch_units",
    "batch_tokens",
    "graph_hops",
    "rerank_candidates",
    "constraint_links",
    "context_budget",
    "top_k",
)
NOT_NEGATIVE = (
    "earlier",
    "todo_window",
    "insight_window",
    "constraint_window",
    "event_window",
)
SHARES = ("reference_threshold", "overlap_threshold", "causal_threshold", "glean_overlap")


@dataclass(frozen=True)
class Settings(RerankedSettings):
    """Settings of `cogcanvas` and of all its variants."""

    batch_units: int = field(default=10, metadata=INGEST)
    """Chunks that one call reads at most."""
    batch_tokens: int = field(default=1000, metadata=INGEST)
    """Tokens of a call's chunks at most; a longer chunk is read alone."""
    earlier: int = field(default=0, metadata=INGEST)
    """Latest artifacts of earlier calls that a call is shown. Calls then wait for each other."""
    gleaning: bool = field(default=True, metadata=INGEST)
    """Whether each batch is read a second time, for what the first reading missed."""
    glean_overlap: float = field(default=0.8, metadata=INGEST)
    """Of what the second reading says, that is dropped which shares more than this of its words
    with something that the first one said.
    """
    dates: Literal["span", "point"] = field(default="span", metadata=INGEST)
    """Relative dates: `span`, as exact as they are said; `point`, each as a single day."""
    temporal_fallback: bool = field(default=False, metadata=INGEST)
    """Whether expressions of time that no artifact quotes become events."""
    index_text: Literal["content_quote", "full"] = field(default="content_quote", metadata=INGEST)
    """What is embedded and indexed: content and quote, or also speaker and dates."""
    graph: bool = field(default=True, metadata=ANSWER)
    """Whether neighbours in the graph are found too."""
    graph_hops: int = field(default=3, metadata=ANSWER)
    """How far out neighbours are found; each hop leaves 0.8 of the score."""
    graph_expansion: Literal["best_path", "published"] = field(default="best_path", metadata=ANSWER)
    """How scores spread: by the best path, or in the published order, where the first one counts.
    """
    reference_threshold: float = field(default=0.5, metadata=ANSWER)
    """Least cosine of two artifacts without a common word of which one refers to the other."""
    overlap_threshold: float = field(default=0.3, metadata=ANSWER)
    """Least cosine of two artifacts with a common word, for references and causes."""
    causal_threshold: float = field(default=0.45, metadata=ANSWER)
    """Least cosine of a cause without a common word."""
    todo_window: int = field(default=5, metadata=ANSWER)
    """Calls back in which a todo finds its decision."""
    insight_window: int = field(default=3, metadata=ANSWER)
    """Calls back in which an insight finds its facts and decisions."""
    constraint_window: int = field(default=2, metadata=ANSWER)
    """Calls back in which a decision finds its facts and reminders."""
    constraint_links: int = field(default=2, metadata=ANSWER)
    """Facts and reminders of a decision at most."""
    constraint_overlap: bool = field(default=True, metadata=ANSWER)
    """Whether a decision and its facts must have a common word."""
    event_window: int = field(default=10, metadata=ANSWER)
    """Calls back in which a decision finds its events."""
    event_chain: bool = field(default=False, metadata=ANSWER)
    """Whether each event is also linked to the next one in time that shares something rare."""
    temporal_edges: bool = field(default=True, metadata=ANSWER)
    """Whether the edges from decisions to earlier facts, reminders and events count."""
    retrieval: Literal["dense", "hybrid"] = field(default="hybrid", metadata=ANSWER)
    """What ranks artifacts: vectors, or 0.7 of vectors and 0.3 of BM25."""
    dense_norm: Literal["none", "max"] = field(default="none", metadata=ANSWER)
    """Whether cosines count as they are, or in shares of the best one."""
    rerank: str = field(default="lexical", metadata=ANSWER)
    """What reorders the artifacts that were found."""
    rerank_candidates: int = field(default=30, metadata=ANSWER)
    """Artifacts whose neighbours are found, where something reranks; else `top_k`."""
    rerank_pool: Literal["expanded", "candidates"] = field(default="expanded", metadata=ANSWER)
    """What is reranked: candidates and neighbours, or the best `rerank_candidates` of them."""
    show: Literal["full", "compact"] = field(default="full", metadata=ANSWER)
    """What the reader sees of an artifact: all, or its type's initial, date and content."""
    context_budget: int = field(default=5000, metadata=ANSWER)
    """Tokens of the artifacts that are shown at most, by the published estimate."""
    show_window: bool = field(default=False, metadata=ANSWER)
    """Whether the agent's window is shown as well, once a compression has cut it."""
    cot: bool = field(default=True, metadata=ANSWER)
    """Whether it answers step by step; else briefly."""
    top_k: int | None = field(default=15, metadata=ANSWER)
    """Artifacts that are shown at most, whatever the cell's `top_k`; None takes the cell's."""
    adaptive_k: bool = field(default=True, metadata=ANSWER)
    """Whether a `top_k` of the system's own below 15 is raised to 12 for questions about time, and
    to 15 for those about reasons and order.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in POSITIVE:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"system.{name} must be positive, but is {value}")

        for name in NOT_NEGATIVE:
            value = getattr(self, name)
            if value < 0:
                raise UserError(f"system.{name} must not be negative, but is {value}")

        for name in SHARES:
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise UserError(f"system.{name} must be above 0 and at most 1, but is {value}")

    @property
    def extraction_rules(self) -> ExtractionRules:
        """What the extraction goes by."""
        return ExtractionRules(
            gleaning=self.gleaning,
            glean_overlap=self.glean_overlap,
            earlier=self.earlier,
            dates=self.dates,
            temporal_fallback=self.temporal_fallback,
        )

    @property
    def graph_rules(self) -> GraphRules:
        """What the graph goes by."""
        return GraphRules(
            reference=self.reference_threshold,
            overlap=self.overlap_threshold,
            causal=self.causal_threshold,
            todo_window=self.todo_window,
            insight_window=self.insight_window,
            constraint_window=self.constraint_window,
            constraint_links=self.constraint_links,
            constraint_overlap=self.constraint_overlap,
            event_window=self.event_window,
            event_chain=self.event_chain,
        )


class CogCanvas(RerankingSystem[CanvasIndex]):
    """The nearest artifacts and their neighbours, reranked."""

    settings_type = Settings
    shows_window = True
    saves_chunks = False
    settings: Settings

    def __init__(self, settings: Settings, parts: SystemContext) -> None:
        super().__init__(settings, replace(parts, top_k=settings.top_k or parts.top_k))

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return True

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        return (TEMPLATE, GLEAN_TEMPLATE) if settings.gleaning else (TEMPLATE,)

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

        texts = [self._search_text(artifact) for artifact in artifacts]
        embedder = await asyncio.to_thread(self.parts.embedder.fitted, texts)
        if saved is None:
            vectors = await embedder.embed(texts)
        else:
            vectors = read_vectors(saved, len(artifacts))

        await asyncio.to_thread(self.rerank_over, self._rerank_texts(artifacts))
        return await asyncio.to_thread(
            CanvasIndex.over,
            artifacts=artifacts,
            texts=texts,
            counts=counts,
            vectors=vectors,
            embedder=embedder,
            rules=self.settings.graph_rules,
        )

    def _search_text(self, artifact: Artifact) -> str:
        is_full = self.settings.index_text == "full"
        return artifact.full_text if is_full else artifact.content_quote

    def _rerank_texts(self, artifacts: Sequence[Artifact]) -> list[str]:
        if self.settings.index_text == "full":
            return [artifact.full_text for artifact in artifacts]

        return [f"{artifact.content} | {artifact.quote}" for artifact in artifacts]

    async def _extract(self) -> tuple[list[Artifact], dict[str, int]]:
        """The artifacts of the conversation, and what their extraction counted."""
        extractor = Extractor(
            model=self.parts.model,
            template=load_builtin(TEMPLATE),
            glean_template=load_builtin(GLEAN_TEMPLATE),
            seed=self.parts.seed,
            rules=self.settings.extraction_rules,
        )
        cut = batches(self.chunks, self.settings.batch_units, self.settings.batch_tokens)

        # Libraries are loaded while the model works.
        loading = asyncio.create_task(asyncio.to_thread(_load_libraries))
        artifacts = await extractor.extract(cut)
        await loading

        self._lost = len(extractor.lost)
        return artifacts, dict(extractor.counts)

    def entries(self) -> list[Retrieved]:
        is_compact = self.settings.show == "compact"
        return [
            Retrieved(
                text=artifact.compact_text if is_compact else artifact.text,
                turn_ids=artifact.turn_ids,
                time=artifact.time,
            )
            for artifact in self._artifacts
        ]

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
        """The full ranking: what was found, best first, then all other artifacts.

        Those are there for the metrics, and have no score.
        """
        if not index.artifacts:
            return []

        settings = self.settings
        scores = await index.scores(
            query.text,
            words=settings.retrieval == "hybrid",
            normalised=settings.dense_norm == "max",
        )
        order = [int(position) for position in np.argsort(-scores, kind="stable")]
        ranked = await self._reranked(query, self._found(index, query, scores, order))

        positions = {position for position, _ in ranked}
        return [*ranked, *((position, None) for position in order if position not in positions)]

    def _found(
        self, index: CanvasIndex, query: Query, scores: Any, order: Sequence[int]
    ) -> list[tuple[int, float]]:
        """The best artifacts and, with a graph, what they reach: best first."""
        settings = self.settings
        count = self._top_k(query) if self.reordering is None else settings.rerank_candidates
        found: Mapping[int, float] = {
            position: float(scores[position]) for position in order[:count] if scores[position] > 0
        }
        if settings.graph:
            found = index.with_neighbours(
                found,
                settings.graph_hops,
                temporal=settings.temporal_edges,
                as_published=settings.graph_expansion == "published",
            )

        return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))

    async def _reranked(
        self, query: Query, found: list[tuple[int, float]]
    ) -> list[tuple[int, float]]:
        if self.reordering is None:
            return found

        settings = self.settings
        count = len(found) if settings.rerank_pool == "expanded" else settings.rerank_candidates
        return await self.reordering.reorder(query.text, found[:count]) + found[count:]

    def _top_k(self, query: Query) -> int:
        """Artifacts that are shown at most. A `top_k` of the cell's is never raised."""
        if self.settings.top_k is None or not self.settings.adaptive_k:
            return self.parts.top_k

        return adapted_top_k(query.text, self.settings.top_k)

    async def answer(self, query: Query) -> Answer:
        """Shows what was found, within `top_k` and the budget.

        What the extraction lost is in the notes.
        """
        ranked = await self.rank(self.index, query, self.ranking_depth) if self.index else []
        count = self._shown(ranked[: self._top_k(query)])
        chosen = [self.entry(position, score) for position, score in ranked[:count]]

        shown = [chunk.text for chunk in chosen]
        if self.settings.show_window:
            shown += [chunk.text for chunk in self.window() if chunk.text not in shown]

        reply = await self.parts.reader.answer(query, shown)
        counts = self.index.counts if self.index else {}
        lost = {name: counts[name] for name in NOTED if counts.get(name)}

        return Answer(
            text=reply.text,
            raw=reply.raw,
            retrieved=tuple(chosen),
            ranking=tuple(self._artifacts[position].turn_ids for position, _ in ranked),
            context_tokens=reply.context_tokens,
            notes={"extraction": lost} if lost else {},
        )

    def _shown(self, ranked: Ranked) -> int:
        """How many artifacts of a ranking are shown: those that were found, within the budget.

        The published estimate counts the content alone, whatever is put before it.
        """
        found = [self._artifacts[position] for position, score in ranked if score is not None]
        is_compact = self.settings.show == "compact"
        texts = (artifact.content if is_compact else artifact.text for artifact in found)
        return within_budget(texts, self.settings.context_budget)


def _load_libraries() -> None:
    """Loads what the indexes are built with, which takes half a second the first time."""
    for name in ("networkx", "rank_bm25"):
        importlib.import_module(name)
