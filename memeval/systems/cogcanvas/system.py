"""CogCanvas (arXiv 2601.00821): typed artifacts with verbatim quotes in a graph, retrieved by
vectors, words and neighbours.

The rules and constants are those of the published system; docs/systems/cogcanvas.md lists the
deliberate differences.

Artifacts are extracted from every chunk. A compression drops turns from the window, but keeps the
artifacts that were extracted from them. Extraction does not look at the window, so all chunks can
be read in batches at the end of the ingest.
"""

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from memeval.llm.metering import current_ledger
from memeval.records import Answer, CorrectRequest, ForgetRequest, IngestHealth, Query, Retrieved
from memeval.retrieval.dense import open_vectors
from memeval.systems.base import NOTHING_FITS, DumpItem, SystemContext, latest_first
from memeval.systems.cogcanvas.artifacts import Artifact, read_artifacts
from memeval.systems.cogcanvas.extraction import GLEAN_TEMPLATE, TEMPLATE, Extractor, batches
from memeval.systems.cogcanvas.retrieval import CanvasIndex, adapted_top_k, within_budget
from memeval.systems.cogcanvas.settings import CogCanvasSettings
from memeval.systems.forgetting import corrected, count_changed, is_meant, without
from memeval.systems.indexed import Ranked
from memeval.systems.reranking import RerankingSystem
from memeval.text.value_search import replace_value

REPLY_LOSSES = {"unreadable": "unreadable", "cut": "broken off"}
"""Counts of replies that each answer's notes show if above 0, with their wording."""
ARTIFACT_LOSSES = {
    "dropped": "artifacts dropped because they quote nothing that was said",
    "unknown_type": "artifacts of an unknown type",
}
"""Counts of artifacts that the notes show, with their wording."""


class CogCanvas(RerankingSystem[CanvasIndex]):
    """The nearest artifacts and their neighbours, reranked."""

    settings_type = CogCanvasSettings
    keeps_window = True
    settings: CogCanvasSettings
    _lost: int

    def __init__(self, settings: CogCanvasSettings, parts: SystemContext) -> None:
        super().__init__(settings, replace(parts, top_k=settings.top_k or parts.top_k))

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        return (TEMPLATE, GLEAN_TEMPLATE) if settings.gleaning else (TEMPLATE,)

    @classmethod
    def answer_style(cls, settings: Any) -> str | None:
        return "cot" if settings.cot else "short"

    def reset(self) -> None:
        super().reset()
        self._lost = 0

    async def forget(self, request: ForgetRequest) -> int:
        """Deletes the artifacts and chunks that are meant, and the chunks of these artifacts."""
        kept: list[Artifact] = []
        turns: set[str] = set()
        for artifact in self._artifacts:
            if is_meant(request, artifact.full_text):
                turns.update(artifact.turn_ids)
            else:
                kept.append(artifact)

        removed = len(self._artifacts) - len(kept)

        # Otherwise the next extraction would find the artifacts again.
        self.change_chunks(
            lambda chunks: [
                chunk for chunk in without(chunks, request) if turns.isdisjoint(chunk.turn_ids)
            ]
        )
        await self._keep(kept)
        return removed

    async def correct(self, request: CorrectRequest) -> int:
        kept = []
        for artifact in self._artifacts:
            content = replace_value(artifact.content, request.old, request.new)
            quote = replace_value(artifact.quote, request.old, request.new)
            kept.append(structs.replace(artifact, content=content, quote=quote))

        changed = count_changed(self._artifacts, kept)
        self.change_chunks(lambda chunks: corrected(chunks, request))
        await self._keep(kept)
        return changed

    async def _keep(self, artifacts: list[Artifact]) -> None:
        """Indexes the artifacts that remain after an operation, without another extraction."""
        counts = self.index.counts if self.index else {}
        self.index = await self._index_over(artifacts, counts, None)
        self.update_entries()

    async def build(self, saved: Path | None) -> CanvasIndex:
        if saved is not None:
            artifacts, counts = read_artifacts(saved)
            return await self._index_over(artifacts, counts, saved)

        extractor = Extractor(model=self.parts.model, seed=self.parts.seed, settings=self.settings)
        cut = batches(self.chunks, self.settings.batch_units, self.settings.batch_tokens)

        # The library of the keyword index is loaded while the model works.
        loading = asyncio.create_task(asyncio.to_thread(importlib.import_module, "rank_bm25"))
        artifacts = await extractor.extract(cut)
        await loading

        self._lost = len(extractor.lost)
        return await self._index_over(artifacts, dict(extractor.counts), None)

    async def _index_over(
        self, artifacts: Sequence[Artifact], counts: Mapping[str, int], saved: Path | None
    ) -> CanvasIndex:
        texts, documents = [], []
        for artifact in artifacts:
            if self.settings.index_text == "full":
                texts.append(artifact.full_text)
                documents.append(artifact.full_text)
            else:
                texts.append(artifact.content_quote)
                # The published form of a document for the reranker.
                documents.append(f"{artifact.content} | {artifact.quote}")

        # The fitted embedder is not saved: the same texts produce the same fit.
        embedder, vectors = await open_vectors(self.parts.embedder, texts, saved, self.index)

        own_work = current_ledger().own_work
        await own_work.in_worker(self.rerank_over, documents)
        index = partial(
            CanvasIndex,
            artifacts=artifacts,
            texts=texts,
            counts=counts,
            vectors=vectors,
            embedder=embedder,
            settings=self.settings,
        )
        return await own_work.in_worker(index)

    def entries(self) -> list[Retrieved]:
        is_compact = self.settings.show == "compact"
        entries = []
        for artifact in self._artifacts:
            text = artifact.compact_text if is_compact else artifact.text
            entries.append(Retrieved(text=text, turn_ids=artifact.turn_ids, time=artifact.time))

        return entries

    @property
    def _artifacts(self) -> Sequence[Artifact]:
        return self.index.artifacts if self.index else ()

    def health(self) -> IngestHealth:
        """Counts as lost the chunks whose replies stayed useless after a second request."""
        asked = len(self.chunks)
        return IngestHealth(asked=asked, stored=asked - self._lost, lost=self._lost)

    def dump(self) -> list[DumpItem]:
        return [artifact.row for artifact in self._artifacts]

    async def rank(self, index: CanvasIndex, query: Query, depth: int) -> Ranked:
        """The full ranking: retrieved artifacts, best first, then all others unscored."""
        if not index.artifacts:
            return []

        settings = self.settings
        words, normalised = settings.retrieval == "hybrid", settings.dense_norm == "max"
        scores = await index.scores(query.text, words=words, normalised=normalised)
        order = np.argsort(-scores, kind="stable").tolist()
        ranked = self._candidates(index, query, scores, order)
        if self.reordering is not None:
            count = len(ranked)
            # As published, everything that was reached is reranked, not only the candidates.
            if settings.rerank_pool == "candidates":
                count = settings.rerank_candidates

            reordered = await self.reordering.reorder(query.text, ranked[:count])
            ranked = reordered + ranked[count:]

        positions = dict(ranked)
        unscored = [(position, None) for position in order if position not in positions]
        return [*ranked, *unscored]

    def _candidates(
        self, index: CanvasIndex, query: Query, scores: Any, order: Sequence[int]
    ) -> list[tuple[int, float]]:
        """The best artifacts and, with a graph, those that they reach: best first."""
        settings = self.settings
        count = settings.rerank_candidates
        if self.reordering is None:
            count = self._top_k(query)

        reached: dict[int, float] = {}
        for position in order[:count]:
            if scores[position] > 0:
                reached[position] = float(scores[position])

        if settings.graph:
            expand = index.canvas.expand
            if settings.graph_expansion == "published":
                expand = index.canvas.expand_as_published

            reached = expand(reached, settings.graph_hops, temporal=settings.temporal_edges)

        # Without a reranker the published code neither sorts nor cuts what it reached, so its
        # ablation shows the reader a larger context. Here every variant is sorted, and cut at
        # `top_k`.
        return sorted(reached.items(), key=lambda pair: (-pair[1], pair[0]))

    def _top_k(self, query: Query) -> int:
        """Maximum artifacts shown. The cell's `top_k` is never raised."""
        if self.settings.top_k is None or not self.settings.adaptive_k:
            return self.parts.top_k

        return adapted_top_k(query.text, self.settings.top_k)

    async def answer(self, query: Query) -> Answer:
        """Shows the best artifacts within `top_k` and budget; notes say what was lost."""
        ranked = await self.ranked(query, self.parts.top_k)
        best = ranked[: self._top_k(query)]
        retrieved = [self._artifacts[position] for position, score in best if score is not None]
        is_compact = self.settings.show == "compact"
        # The published estimate counts only the content, not what is shown before it.
        texts = (artifact.content if is_compact else artifact.text for artifact in retrieved)
        budget = self.settings.context_budget
        chosen = ranked[: within_budget(texts, budget)]
        if retrieved and not chosen:
            current_ledger().remarks[NOTHING_FITS] = (
                f"the best artifact is larger than system.context_budget={budget}, so none was "
                "shown"
            )

        shown = [self._entries[position].text for position, _ in chosen]
        # The published system never shows the turns that it retains: by default there are none.
        shown += [chunk.text for chunk in self.window() if chunk.text not in shown]
        order = latest_first(len(shown), after=len(chosen))
        reply = await self.parts.reader.answer(query, shown, order=order)
        return self.answer_of(reply, chosen=chosen, ranked=ranked, notes=self._notes())

    def _notes(self) -> dict[str, Any]:
        """Losses of the extraction, and the number of edges of the graph."""
        if self.index is None:
            return {}

        notes: dict[str, Any] = {}
        if lost := describe_losses(self.index.counts):
            notes["extraction"] = lost
        if self.settings.graph and self.index.canvas.edge_counts["all"]:
            notes["edges"] = self.index.canvas.edge_counts

        return notes


def describe_losses(counts: Mapping[str, int]) -> str:
    """Losses of an extraction: `11 of 37 replies unreadable, 2 artifacts of an unknown type`."""
    calls = counts.get("calls", 0)
    lost = []
    for name, loss in REPLY_LOSSES.items():
        if count := counts.get(name):
            lost.append(f"{count} of {calls} replies {loss}")

    lost += [f"{counts[name]} {loss}" for name, loss in ARTIFACT_LOSSES.items() if counts.get(name)]
    return ", ".join(lost)
