"""CogCanvas's index: artifacts by their vectors, their words and their neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memeval.retrieval.bm25 import Bm25Index
from memeval.retrieval.embedding.contract import Embedder
from memeval.systems.cogcanvas.artifacts import Artifact, write_artifacts
from memeval.systems.cogcanvas.graph import Canvas
from memeval.systems.cogcanvas.retrieval import hybrid, plain_words, shares
from memeval.systems.cogcanvas.settings import Settings

if TYPE_CHECKING:
    from memeval.retrieval.embedding.contract import Vectors
    from memeval.systems.cogcanvas.retrieval import Scores

VECTORS_FILE = "vectors.npy"


@dataclass(frozen=True)
class CanvasIndex:
    """The artifacts of one conversation with the indexes over them."""

    artifacts: Sequence[Artifact]
    counts: Mapping[str, int]
    """The counts of their extraction."""
    vectors: Vectors
    """Of the artifacts' search texts, by position."""
    embedder: Embedder
    """Fitted on the search texts."""
    keywords: Bm25Index
    canvas: Canvas

    @classmethod
    def over(
        cls,
        *,
        artifacts: Sequence[Artifact],
        texts: Sequence[str],
        counts: Mapping[str, int],
        vectors: Vectors,
        embedder: Embedder,
        settings: Settings,
    ) -> CanvasIndex:
        """Builds the indexes over artifacts, their search texts and their vectors."""
        return cls(
            artifacts=artifacts,
            counts=counts,
            vectors=vectors,
            embedder=embedder,
            # As published: punctuation is deleted, so "self-care" is one word, and the rest is cut
            # at spaces.
            keywords=Bm25Index([plain_words(text) for text in texts], tokens="space"),
            canvas=Canvas(artifacts, vectors, settings),
        )

    async def scores(self, text: str, *, words: bool, normalised: bool) -> Scores:
        """The score of each artifact by vectors, and words; `normalised` by the best cosine."""
        (vector,) = await self.embedder.embed([text])
        dense = (self.vectors @ vector).astype(np.float64)
        if normalised:
            dense = shares(dense)

        return hybrid(dense, self.keywords.scores(plain_words(text))) if words else dense

    def with_neighbours(
        self, candidates: Mapping[int, float], hops: int, *, temporal: bool, as_published: bool
    ) -> dict[int, float]:
        """The candidates and everything that they reach, with scores, never below their own."""
        if as_published:
            return self.canvas.expand_as_published(
                list(candidates.items()), hops, temporal=temporal
            )

        # 0 is "not reached": candidates have scores above 0.
        seeded = np.zeros(len(self.artifacts))
        seeded[list(candidates)] = list(candidates.values())
        reached = self.canvas.expand(seeded, hops, temporal=temporal)
        return {int(position): float(reached[position]) for position in np.flatnonzero(reached)}

    def save(self, folder: Path) -> None:
        """Writes artifacts, counts and vectors into `folder`."""
        write_artifacts(folder, self.artifacts, self.counts)
        np.save(folder / VECTORS_FILE, self.vectors, allow_pickle=False)

    def close(self) -> None:
        """Holds nothing that must be given back."""
