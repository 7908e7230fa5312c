"""CogCanvas's index: artifacts by their vectors, their words and their neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class CanvasIndex:
    """The artifacts of one conversation with the indexes over them."""

    def __init__(
        self,
        *,
        artifacts: Sequence[Artifact],
        texts: Sequence[str],
        counts: Mapping[str, int],
        vectors: Vectors,
        embedder: Embedder,
        settings: Settings,
    ) -> None:
        """`texts` are the artifacts' search texts, with their vectors and the embedder that was
        fitted on them; `counts` are those of the extraction.
        """
        self.artifacts, self.counts = artifacts, counts
        self.canvas = Canvas(artifacts, vectors, settings)
        self._vectors, self._embedder = vectors, embedder
        # As published: punctuation is deleted, so "self-care" is one word, and the rest is cut at
        # spaces.
        self._keywords = Bm25Index([plain_words(text) for text in texts], tokens="space")

    async def scores(self, text: str, *, words: bool, normalised: bool) -> Scores:
        """The score of each artifact by vectors, and words; `normalised` by the best cosine."""
        (vector,) = await self._embedder.embed([text])
        dense = (self._vectors @ vector).astype(np.float64)
        if normalised:
            dense = shares(dense)

        return hybrid(dense, self._keywords.scores(plain_words(text))) if words else dense

    def save(self, folder: Path) -> None:
        """Writes artifacts, counts and vectors into `folder`."""
        write_artifacts(folder, self.artifacts, self.counts)
        np.save(folder / VECTORS_FILE, self._vectors, allow_pickle=False)

    def close(self) -> None:
        """Holds nothing that must be given back."""
