"""Texts embedded by the run's embedder and searched by their vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from memeval.errors import ModelError
from memeval.llm.metering import current_ledger
from memeval.retrieval.embedding.contract import Embedder, Vectors
from memeval.retrieval.vectors import VectorIndex, load_vectors, width_error

VECTORS_FILE = "vectors.npy"
LENGTH_TOLERANCE = 0.01
"""Rounding of a unit vector's length, in half precision."""


class Embedded(Protocol):
    """An index that has the vectors of its texts."""

    def vectors_by_text(self) -> dict[str, Vectors]:
        """The vectors by text."""


def _learns(embedder: Embedder) -> bool:
    """Whether the vector of a text depends on the other texts."""
    return type(embedder).fitted is not Embedder.fitted


async def embed(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """The embedder's vectors. Raises `ModelError` unless each text has one, of length 1 or 0."""
    vectors = np.asarray(await embedder.embed(texts), dtype=np.float32)
    if not texts:
        return vectors

    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise ModelError(
            f"the embedder returned vectors of shape {vectors.shape} for {len(texts)} texts"
        )

    lengths = np.linalg.norm(vectors, axis=1)
    if not ((lengths == 0) | (np.abs(lengths - 1) < LENGTH_TOLERANCE)).all():
        raise ModelError("the embedder returned a vector that is not of length 1")

    return vectors


async def _embed(embedder: Embedder, texts: Sequence[str], before: Embedded | None) -> Vectors:
    """The vectors of the texts; only texts that `before` does not have are embedded."""
    vectors: dict[str, Vectors] = {}
    if before is not None and not _learns(embedder):
        vectors = before.vectors_by_text()
    if not vectors:
        return await embed(embedder, texts)

    width = len(next(iter(vectors.values())))
    new = [text for text in dict.fromkeys(texts) if text not in vectors]
    if new:
        made = await embed(embedder, new)
        if made.shape[1] != width:
            raise width_error("a text's vector", made.shape[1], width)

        vectors |= zip(new, made, strict=True)

    rows = list(map(vectors.__getitem__, texts))
    # Without any text, the array would lose its second axis.
    return np.array(rows, dtype=np.float32).reshape(len(texts), width)


async def open_vectors(
    embedder: Embedder, texts: Sequence[str], saved: Path | None, before: Embedded | None
) -> tuple[Embedder, Vectors]:
    """The embedder fitted to the texts, and their vectors: embedded, or read from the folder
    `saved`. Raises if that is damaged.

    `before` is the index over earlier texts of the same memory: texts that stay keep their vectors,
    unless the embedder learns from all of them.
    """
    in_worker = current_ledger().own_work.in_worker
    # An embedder that learns nothing stays on the event loop. Cases then embed their texts in their
    # own order, and the same run sends the same batches each time.
    if _learns(embedder):
        embedder = await in_worker(embedder.fitted, texts)
    if saved is None:
        return embedder, await _embed(embedder, texts, before)

    return embedder, await in_worker(load_vectors, saved / VECTORS_FILE, len(texts), "texts")


class DenseIndex:
    """Nearest texts by cosine; positions refer to the given texts."""

    def __init__(self, embedder: Embedder, texts: Sequence[str], index: VectorIndex) -> None:
        self._embedder = embedder
        self._texts = texts
        self._index = index

    @classmethod
    async def open(
        cls,
        embedder: Embedder,
        texts: Sequence[str],
        saved: Path | None,
        before: Self | None = None,
    ) -> Self:
        """The index over the texts, with the vectors from `open_vectors`."""
        fitted, vectors = await open_vectors(embedder, texts, saved, before)
        index = await current_ledger().own_work.in_worker(VectorIndex, vectors)
        return cls(fitted, texts, index)

    def vectors_by_text(self) -> dict[str, Vectors]:
        return dict(zip(self._texts, self._index.vectors(), strict=True))

    def save(self, folder: Path) -> None:
        """Writes the vectors into `folder`; the caller keeps the texts."""
        self._index.save(folder / VECTORS_FILE)

    async def search(self, text: str, depth: int) -> list[tuple[int, float]]:
        """The nearest `depth` positions with their cosines, best first."""
        (vector,) = await embed(self._embedder, [text])
        positions, scores = self._index.query(vector, depth)
        return list(zip(positions, scores, strict=True))

    def close(self) -> None:
        self._index.close()
