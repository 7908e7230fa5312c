"""Nearest vectors in Chroma: one Chroma per index, held in memory, dropped on close."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from memeval.errors import ModelError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

    from memeval.retrieval.embedding.contract import Vectors

BATCH = 1000
"""Vectors per call of `add`."""
EXACT_UP_TO = 5000
"""Indexes up to this size search their whole graph, and so find what an exact search finds."""
SLACK = 16
"""Neighbours asked for beyond the wanted depth, to see whether a tie spans its end."""

TRIMMED_FROM = 4_000_000
"""Bytes of vectors from which on a dropped index asks the allocator to give its pages back."""

_CREATING = Lock()
_SHARED = "ephemeral"
"""The name under which Chroma registers every client that keeps its data in memory."""


def other_width(what: str, width: int, kept: int) -> ModelError:
    """The error for a vector of another width than those that a memory holds."""
    return ModelError(
        f"{what} has {width} numbers, where those of the memory have {kept}: the embedding model "
        f"has another width than before; use embedder.width={width}, which makes memories and "
        "vectors again"
    )


class OwnChroma:
    """A Chroma of one index: its memory goes when it is closed.

    A collection that is deleted from a Chroma in use keeps its index, its log and its page cache in
    memory; all of them go with their system. Clients in memory would share one system, so each gets
    its own. Chroma's register is left as it was, for other users of Chroma in this process.
    """

    def __init__(self) -> None:
        from chromadb.api.client import Client
        from chromadb.api.shared_system_client import SharedSystemClient
        from chromadb.config import Settings, System

        self._system = System(Settings(is_persistent=False, anonymized_telemetry=False))
        registers: tuple[Any, ...] = (
            SharedSystemClient._identifier_to_system,
            SharedSystemClient._identifier_to_refcount,
        )
        with _CREATING:
            self._system.start()
            before = [register.get(_SHARED) for register in registers]
            try:
                self.client: ClientAPI = Client.from_system(self._system)
            finally:
                for register, entry in zip(registers, before, strict=True):
                    if entry is None:
                        register.pop(_SHARED, None)
                    else:
                        register[_SHARED] = entry

    def close(self) -> None:
        """Gives everything back; the client can't be used afterwards."""
        self._system.stop()


class ChromaIndex:
    """Inner-product search over unit vectors, which is cosine.

    Positions are those of the rows given.
    """

    def __init__(self, vectors: Vectors) -> None:
        self.size = len(vectors)
        self._chroma = OwnChroma() if self.size else None
        self._collection: Collection | None = None
        if self._chroma is not None:
            self._collection = _fill(self._chroma.client, vectors)

        self._bytes = int(vectors.nbytes)
        self._width = vectors.shape[1] if self.size else 0

    def query(self, vector: Vectors, depth: int) -> tuple[list[int], list[float]]:
        """The nearest `depth` positions, best first and ties by position, and their cosines.

        Raises `ModelError` for a vector of another width than the rows: an endpoint may have got
        another model under the same name since they were made.
        """
        depth = min(depth, self.size)
        if self._collection is None or depth <= 0:
            return [], []

        if len(vector) != self._width:
            raise other_width("the query's vector", len(vector), self._width)

        wanted = depth + SLACK
        while True:
            neighbours = self._neighbours(vector, min(wanted, self.size))
            if (
                len(neighbours) <= depth
                or neighbours[depth - 1][0] != neighbours[-1][0]
                or wanted >= self.size
            ):
                break

            # The tie at the end may hold lower positions that were not returned.
            wanted *= 2

        best = sorted(neighbours, key=lambda pair: (-pair[0], pair[1]))[:depth]
        return [position for _, position in best], [score for score, _ in best]

    def _neighbours(self, vector: Vectors, count: int) -> list[tuple[float, int]]:
        assert self._collection is not None
        reply = self._collection.query(
            query_embeddings=np.asarray(vector, dtype=np.float32),
            n_results=count,
            include=["distances"],
        )
        distances: Any = reply["distances"]
        return [
            (1.0 - float(distance), int(name))
            for distance, name in zip(distances[0], reply["ids"][0], strict=True)
        ]

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
        """Writes the rows to a `.npy` file, from which `load` builds an index that answers
        identically.

        Chroma's own folder is not used: to open one and query it changes its files, and those of a
        saved memory are sealed (docs/adding_a_system.md).
        """
        np.save(path, self.vectors(), allow_pickle=False)

    @classmethod
    def load(cls, path: Path) -> Self:
        """An index over the rows that `save` wrote.

        Raises `ValueError` or `OSError` if the file is damaged.
        """
        return cls(np.load(path, allow_pickle=False))

    def close(self) -> None:
        """Drops the vectors; the index is then empty."""
        chroma, self._chroma = self._chroma, None
        self._collection, self.size = None, 0
        if chroma is not None:
            chroma.close()
            if self._bytes >= TRIMMED_FROM:
                give_pages_back()


def give_pages_back() -> None:
    """Hands freed memory back to the operating system.

    glibc keeps it otherwise, in arenas of threads that have ended. Elsewhere nothing happens.
    """
    trim = _trimmer()
    if trim is not None:
        trim(0)


@cache
def _trimmer() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None

    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library than glibc
        return None

    return trim


def _fill(client: ClientAPI, vectors: Vectors) -> Collection:
    whole = min(len(vectors), EXACT_UP_TO)
    hnsw: Any = {
        # The product of unit vectors is their cosine.
        "space": "ip",
        # HNSW is approximate: on 50,000 vectors made to be difficult, it found 0.42 of the nearest
        # ten.
        "ef_search": max(100, whole),
        "ef_construction": 100,
        "max_neighbors": 32,
    }
    collection = client.create_collection(
        # None, or Chroma loads its own embedder, which needs the network.
        "memeval",
        configuration={"hnsw": hnsw},
        embedding_function=None,
    )
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        collection.add(ids=[str(start + offset) for offset in range(len(batch))], embeddings=batch)

    return collection
