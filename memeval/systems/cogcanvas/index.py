"""What CogCanvas searches: artifacts by their vectors, their words and their neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memeval.embedding.contract import Embedder
from memeval.retrieval.bm25 import Bm25Index
from memeval.systems.cogcanvas.artifacts import Artifact, write_artifacts
from memeval.systems.cogcanvas.graph import Canvas
from memeval.systems.cogcanvas.retrieval import hybrid, shares

if TYPE_CHECKING:
    from memeval.embedding.contract import Vectors
    from memeval.systems.cogcanvas.retrieval import Scores

VECTORS_FILE = "vectors.npy"


@dataclass(frozen=True)
class CanvasIndex:
    """The artifacts of one conversation, ready to be searched."""

    artifacts: Sequence[Artifact]
    counts: Mapping[str, int]
    """What their extraction counted."""
    vectors: Vectors
    """Of the artifacts' search texts, by position."""
    embedder: Embedder
    """Fitted on the search texts."""
    keywords: Bm25Index
    canvas: Canvas

    @classmethod
    def over(
        cls,
        artifacts: Sequence[Artifact],
        counts: Mapping[str, int],
        vectors: Vectors,
        embedder: Embedder,
        reference_threshold: float,
    ) -> CanvasIndex:
        """Makes everything that answers need of artifacts and their vectors; takes a while."""
        return cls(
            artifacts=artifacts,
            counts=counts,
            vectors=vectors,
            embedder=embedder,
            keywords=Bm25Index([artifact.search_text for artifact in artifacts]),
            canvas=Canvas(artifacts, vectors, reference_threshold),
        )

    async def scores(self, text: str, *, words: bool) -> Scores:
        """The score of each artifact for a query: by vectors, or by vectors and words."""
        (vector,) = await self.embedder.embed([text])
        dense = (self.vectors @ vector).astype(np.float64)
        return hybrid(dense, self.keywords.scores(text)) if words else shares(dense)

    def with_neighbours(self, scores: Scores, seeds: int, hops: int, *, temporal: bool) -> Scores:
        """The scores, those of artifacts near the best `seeds` raised by what reaches them."""
        best = np.argsort(-scores, kind="stable")[:seeds]
        seeded = np.zeros_like(scores)
        seeded[best] = scores[best]
        return np.maximum(scores, self.canvas.expand(seeded, hops, temporal=temporal))

    def save(self, folder: Path) -> None:
        """Writes artifacts, counts and vectors into `folder`."""
        write_artifacts(folder, self.artifacts, self.counts)
        np.save(folder / VECTORS_FILE, self.vectors, allow_pickle=False)

    def close(self) -> None:
        """Holds nothing that must be given back."""


def read_vectors(folder: Path, count: int) -> Vectors:
    """The vectors of `count` artifacts. Raises `ValueError` or `OSError` for a damaged file."""
    vectors: Vectors = np.load(folder / VECTORS_FILE, allow_pickle=False)
    if len(vectors) != count:
        raise ValueError(
            f"{folder / VECTORS_FILE} holds {len(vectors)} vectors for {count} artifacts"
        )

    return vectors
