"""Nearest vectors in Chroma: one collection per index, held in memory, dropped on close."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import numpy as np

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

    from memeval.embedding.contract import Vectors

BATCH = 1000
"""Vectors per call of `add`."""
EXACT_UP_TO = 5000
"""Indexes of at most this size search their whole graph, so that what they find is what an exact search would."""
SLACK = 16
"""Neighbours asked for beyond the wanted depth, to see whether a tie spans its end."""

_CREATING = Lock()


@cache
def _client() -> ClientAPI:
    import chromadb
    from chromadb.config import Settings

    return chromadb.EphemeralClient(settings=Settings(anonymized_telemetry=False))


def shared_client() -> ClientAPI:
    """The process's one Chroma client: all of its ephemeral clients share their state anyway."""
    with _CREATING:
        return _client()


class ChromaIndex:
    """Inner-product search over unit vectors, which is cosine; positions are those of the rows given."""

    def __init__(self, vectors: Vectors) -> None:
        self.size = len(vectors)
        self._collection: Collection | None = _filled(vectors) if self.size else None

    def query(self, vector: Vectors, depth: int) -> tuple[list[int], list[float]]:
        """The nearest `depth` positions, best first and ties by position, and their cosines."""
        depth = min(depth, self.size)
        if self._collection is None or depth <= 0:
            return [], []
        wanted = depth + SLACK
        while True:
            found = self._neighbours(vector, min(wanted, self.size))
            if len(found) <= depth or found[depth - 1][0] != found[-1][0] or wanted >= self.size:
                break
            wanted *= 2  # the tie at the end may hold lower positions that were not returned
        best = sorted(found, key=lambda pair: (-pair[0], pair[1]))[:depth]
        return [position for _, position in best], [score for score, _ in best]

    def _neighbours(self, vector: Vectors, count: int) -> list[tuple[float, int]]:
        assert self._collection is not None
        reply = self._collection.query(query_embeddings=np.asarray(vector, dtype=np.float32), n_results=count, include=["distances"])
        distances: Any = reply["distances"]
        return [(1.0 - float(distance), int(name)) for distance, name in zip(distances[0], reply["ids"][0], strict=True)]

    def vectors(self) -> Vectors:
        """The rows as they were given."""
        if self._collection is None:
            return np.zeros((0, 0), dtype=np.float32)
        reply: Any = self._collection.get(include=["embeddings"])
        rows = np.empty((self.size, len(reply["embeddings"][0])), dtype=np.float32)
        for name, row in zip(reply["ids"], reply["embeddings"], strict=True):
            rows[int(name)] = row
        return rows

    def save(self, path: Path) -> None:
        """Writes the rows to a `.npy` file, from which `load` builds an index that answers identically."""
        np.save(path, self.vectors(), allow_pickle=False)

    @classmethod
    def load(cls, path: Path) -> Self:
        """An index over the rows that `save` wrote. Raises `ValueError` or `OSError` where the file is damaged."""
        return cls(np.load(path, allow_pickle=False))

    def close(self) -> None:
        """Drops the collection; the index is then empty."""
        if self._collection is not None:
            shared_client().delete_collection(self._collection.name)
        self._collection, self.size = None, 0


def _filled(vectors: Vectors) -> Collection:
    whole = min(len(vectors), EXACT_UP_TO)
    hnsw: Any = {"space": "ip", "ef_search": max(100, whole), "ef_construction": 100, "max_neighbors": 32}
    collection = shared_client().create_collection(f"memeval-{uuid4().hex}", configuration={"hnsw": hnsw}, embedding_function=None)
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        collection.add(ids=[str(start + offset) for offset in range(len(batch))], embeddings=batch)
    return collection
