"""Texts embedded by the cell's embedder and searched by their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from memeval.llm.metering import current_ledger
from memeval.retrieval.embedding.contract import Embedder
from memeval.retrieval.vectors import VectorIndex, load_vectors

if TYPE_CHECKING:
    from memeval.retrieval.embedding.contract import Vectors

VECTORS_FILE = "vectors.npy"


async def _fit(embedder: Embedder, texts: Sequence[str]) -> Embedder:
    """The embedder fitted on the texts, in a thread if it learns from them.

    An embedder that learns nothing stays on the event loop. Cases then embed their texts in their
    own order, and the same run sends the same batches each time.
    """
    if type(embedder).fitted is Embedder.fitted:
        return embedder

    return await current_ledger().own.in_worker(embedder.fitted, texts)


class DenseIndex:
    """Nearest texts by cosine; positions are those of the texts given."""

    def __init__(self, embedder: Embedder, index: VectorIndex) -> None:
        self._embedder = embedder
        self._index = index

    @classmethod
    async def open(cls, embedder: Embedder, texts: Sequence[str], saved: Path | None) -> Self:
        """The index over the texts, with the embedder fitted to them. The vectors are embedded, or
        read from the folder `saved`. Raises if that is damaged.
        """
        fitted = await _fit(embedder, texts)
        own = current_ledger().own
        if saved is None:
            vectors = await fitted.embed(texts)
        else:
            vectors = await own.in_worker(load_vectors, saved / VECTORS_FILE, len(texts), "texts")

        return cls(fitted, await own.in_worker(VectorIndex, vectors))

    def save(self, folder: Path) -> None:
        """Writes the vectors into `folder`; the texts are the caller's to keep."""
        self._index.save(folder / VECTORS_FILE)

    async def search(self, text: str, depth: int) -> list[tuple[int, float]]:
        """The nearest `depth` positions with their cosines, best first."""
        vectors: Vectors = await self._embedder.embed([text])
        positions, scores = self._index.query(vectors[0], depth)
        return list(zip(positions, scores, strict=True))

    def close(self) -> None:
        self._index.close()
