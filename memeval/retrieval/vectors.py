"""Nearest vectors: an exact search, and for very many an approximate one in Chroma."""

from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from memeval.errors import ModelError
from memeval.process import started
from memeval.process.allocator import release_free_memory
from memeval.retrieval.embedding.contract import Vectors

EXACT_UP_TO = 50_000
"""Up to this many vectors, each is compared with the query; larger indexes are in Chroma."""
BATCH = 1000
"""Vectors per call of Chroma's `add`."""
SEARCH_NEIGHBOURS = 5000
"""Neighbours that Chroma visits in its approximate search: with its default of 100, it found .42 of
the nearest ten among 50,000 vectors that were constructed to be difficult.
"""

TRIM_FROM_BYTES = 4_000_000
"""Minimum bytes of vectors with which a dropped index asks the allocator to return its pages."""

_NO_ROWS = np.zeros((0, 0), dtype=np.float32)

_CLIENT_LOCK = Lock()
"""Guards Chroma's registry of clients, which has no lock."""


def width_error(vector: str, width: int, kept: int) -> ModelError:
    """The error for a vector whose width differs from those of a memory."""
    return ModelError(
        f"{vector} has {width} numbers, but those of the memory have {kept}: the embedding "
        f"model's width has changed; use embedder.width={width}, which rebuilds memories and "
        "vectors"
    )


def load_vectors(file: Path, count: int, of: str) -> Vectors:
    """The vectors in a `.npy` file, one for each of `count` texts, or other items that `of` names.

    Raises `ValueError` or `OSError` for a damaged file.
    """
    vectors: Vectors = np.load(file, allow_pickle=False)
    if len(vectors) != count:
        raise ValueError(f"{file} has {len(vectors)} vectors for {count} {of}")

    return vectors


class VectorIndex:
    """Inner-product search over unit vectors, which is cosine; positions refer to its rows."""

    def __init__(self, vectors: Vectors) -> None:
        rows = np.ascontiguousarray(vectors, dtype=np.float32)
        self.size = len(rows)
        self._bytes = int(rows.nbytes)
        self._width = rows.shape[1] if self.size else 0
        self._rows, self._chroma = rows, None
        if self.size > EXACT_UP_TO:
            self._rows, self._chroma = _NO_ROWS, ChromaVectors(rows)

    def query(self, vector: Vectors, depth: int) -> tuple[list[int], list[float]]:
        """The nearest `depth` positions, best first and ties by position, and their cosines.

        Raises `ModelError` for a vector of another width than the rows: the endpoint may have
        another model under the same name since the rows were computed.
        """
        depth = min(depth, self.size)
        if depth <= 0:
            return [], []

        if len(vector) != self._width:
            raise width_error("the query's vector", len(vector), self._width)

        query = np.asarray(vector, dtype=np.float32)
        if self._chroma is not None:
            positions, distances = self._chroma.nearest(query, depth)
        else:
            # Each row separately: in the product of a whole matrix, a value depends on the row's
            # position, so equal rows would not tie. Distances are rounded as Chroma's are.
            distances = np.float32(1) - np.vecdot(self._rows, query)
            positions = np.arange(self.size)

        best = np.lexsort((positions, distances))[:depth]
        return positions[best].tolist(), (1.0 - distances[best].astype(np.float64)).tolist()

    def vectors(self) -> Vectors:
        """The rows as they were given."""
        if self._chroma is not None:
            return self._chroma.vectors(self.size, self._width)

        return self._rows

    def save(self, path: Path) -> None:
        """Writes the rows to a `.npy` file: an index over them answers identically.

        Chroma's own folder is not used: opening and querying it changes its files, and those of a
        saved memory are sealed (docs/adding_a_system.md).
        """
        np.save(path, self.vectors(), allow_pickle=False)

    def close(self) -> None:
        """Drops the vectors; the index is then empty."""
        if self._chroma is not None:
            self._chroma.close()

        self._chroma, self._rows, self.size = None, _NO_ROWS, 0
        if self._bytes >= TRIM_FROM_BYTES:
            release_free_memory()


class ChromaVectors:
    """A Chroma collection in its own temporary folder, which is removed with it."""

    def __init__(self, rows: Vectors) -> None:
        from chromadb import PersistentClient
        from chromadb.config import Settings

        self._folder = started.make_folder("chroma")
        with _CLIENT_LOCK:
            # Its declared type has no `close`, which every client has.
            self._client: Any = PersistentClient(self._folder, Settings(anonymized_telemetry=False))

        self._collection = self._client.create_collection(
            "memeval",
            # The product of unit vectors is their cosine.
            configuration={
                "hnsw": {
                    "space": "ip",
                    "ef_construction": 100,
                    "ef_search": SEARCH_NEIGHBOURS,
                    "max_neighbors": 32,
                }
            },
            # Without `None`, Chroma loads its own embedder, which needs the network.
            embedding_function=None,
        )
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            names = list(map(str, range(start, start + len(batch))))
            self._collection.add(ids=names, embeddings=batch)

    def nearest(self, vector: Vectors, depth: int) -> tuple[Any, Any]:
        """Positions and distances of the nearest `depth` rows, as arrays of shape (depth,)."""
        reply: Any = self._collection.query(
            query_embeddings=vector, n_results=depth, include=["distances"]
        )
        positions = np.array(reply["ids"][0], dtype=np.int64)
        return positions, np.array(reply["distances"][0], dtype=np.float32)

    def vectors(self, size: int, width: int) -> Vectors:
        """The rows in the order in which they were added."""
        reply: Any = self._collection.get(include=["embeddings"])
        rows = np.empty((size, width), dtype=np.float32)
        rows[np.array(reply["ids"], dtype=np.int64)] = reply["embeddings"]
        return rows

    def close(self) -> None:
        """Releases the client, and removes the folder."""
        with _CLIENT_LOCK:
            self._client.close()

        started.remove_folder(self._folder)
