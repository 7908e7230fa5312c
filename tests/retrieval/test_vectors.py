from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memeval.errors import ModelError
from memeval.process.leftovers import owner
from memeval.retrieval.dense import DenseIndex
from memeval.retrieval.embedding.contract import Embedder
from memeval.retrieval.vectors import VectorIndex, load_vectors


def unit_rows(count: int, width: int, seed: int, kept: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, width)).astype(np.float32)
    rows[rng.random((count, width)) > kept] = 0
    rows[:, 0] += 1e-3
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def exact(rows: np.ndarray, query: np.ndarray, depth: int) -> list[int]:
    return np.argsort(-(rows @ query), kind="stable")[:depth].tolist()


@pytest.mark.parametrize(
    ("count", "width", "kept"), [(700, 1024, 0.03), (700, 64, 1.0), (2000, 32, 1.0)]
)
def test_small_indexes_find_what_an_exact_search_finds(count: int, width: int, kept: float) -> None:
    rows, queries = unit_rows(count, width, 0, kept), unit_rows(40, width, 1, kept)
    index = VectorIndex(rows)
    for query in queries:
        positions, scores = index.query(query, 20)
        assert set(positions) == set(exact(rows, query, 20))
        assert scores == sorted(scores, reverse=True)
        assert np.allclose(scores, rows[positions] @ query, atol=1e-5)
    index.close()


def test_ties_are_ordered_by_row_even_across_the_cut() -> None:
    rows = unit_rows(300, 32, 2)
    rows[40:140] = rows[40]
    index = VectorIndex(rows)
    assert index.query(rows[40], 5)[0] == [40, 41, 42, 43, 44]
    index.close()


def test_zero_vector_scores_zero_with_every_row() -> None:
    rows = np.vstack([np.zeros((1, 8), dtype=np.float32), np.eye(8, dtype=np.float32)])
    index = VectorIndex(rows)
    assert index.query(rows[3], 1) == ([3], [1.0])
    assert index.query(np.zeros(8, dtype=np.float32), 3) == ([0, 1, 2], [0.0, 0.0, 0.0])
    index.close()


def test_depth_is_limited_to_the_size_and_empty_index_finds_nothing() -> None:
    index = VectorIndex(np.eye(3, dtype=np.float32))
    assert len(index.query(np.eye(3, dtype=np.float32)[0], 50)[0]) == 3
    assert index.query(np.eye(3, dtype=np.float32)[0], 0) == ([], [])
    index.close()
    assert VectorIndex(np.zeros((0, 3), dtype=np.float32)).query(
        np.zeros(3, dtype=np.float32), 5
    ) == ([], [])


def test_saved_index_returns_identical_results(tmp_path: Path) -> None:
    rows, queries = unit_rows(500, 128, 3), unit_rows(20, 128, 4)
    index = VectorIndex(rows)
    index.save(tmp_path / "rows.npy")
    loaded = VectorIndex(load_vectors(tmp_path / "rows.npy", 500, "texts"))
    assert np.array_equal(loaded.vectors(), rows)
    assert [loaded.query(query, 10) for query in queries] == [
        index.query(query, 10) for query in queries
    ]
    index.close()
    loaded.close()
    with pytest.raises(ValueError, match="has 500 vectors for 499 texts"):
        load_vectors(tmp_path / "rows.npy", 499, "texts")


def test_equal_rows_have_equal_scores_wherever_they_lie() -> None:
    rows = unit_rows(701, 333, 5)
    rows[[7, 350]] = rows[700]
    positions, scores = VectorIndex(rows).query(unit_rows(1, 333, 6)[0], 701)
    of = dict(zip(positions, scores, strict=True))
    assert of[7] == of[350] == of[700]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the index use Chroma for more than three vectors."""
    monkeypatch.setattr("memeval.retrieval.vectors.EXACT_UP_TO", 3)


def folders() -> set[str]:
    """Those of this process: other tests may run at the same time."""
    own = f"memeval-chroma-{owner()}-*"
    return {path.name for path in Path(tempfile.gettempdir()).glob(own)}


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_many_vectors_are_searched_in_chroma(tmp_path: Path) -> None:
    rows, queries = unit_rows(2500, 64, 0), unit_rows(20, 64, 1)
    before = folders()
    index = VectorIndex(rows)
    (folder,) = folders() - before
    assert np.array_equal(index.vectors(), rows)
    for query in queries:
        positions, scores = index.query(query, 20)
        assert positions == exact(rows, query, 20)
        assert np.allclose(scores, rows[positions] @ query, atol=1e-5)

    index.save(tmp_path / "rows.npy")
    loaded = VectorIndex(load_vectors(tmp_path / "rows.npy", index.size, "texts"))
    assert loaded.query(queries[0], 9) == index.query(queries[0], 9)
    with pytest.raises(ModelError, match="65 numbers"):
        index.query(np.ones(65, dtype=np.float32), 1)

    index.close()
    loaded.close()
    assert folder not in folders()


@pytest.mark.usefixtures("few")
def test_an_index_leaves_other_clients_of_chroma_alone() -> None:
    import chromadb

    rows = unit_rows(5, 8, 4)
    index = VectorIndex(rows)
    mine = chromadb.EphemeralClient()
    notes = mine.create_collection("notes", embedding_function=None)
    notes.add(ids=["1"], embeddings=rows[:1])
    other = VectorIndex(rows)
    index.close()
    assert other.query(rows[2], 1)[0] == [2]
    other.close()
    assert [collection.name for collection in mine.list_collections()] == ["notes"]
    assert notes.count() == 1
    assert index.query(rows[0], 3) == ([], [])
    mine.delete_collection("notes")


@pytest.mark.usefixtures("few")
def test_indexes_in_chroma_of_several_threads_do_not_mix() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(found, range(4)))


GROWING = """
import numpy as np
from memeval.retrieval import vectors
from memeval.retrieval.vectors import VectorIndex

vectors.EXACT_UP_TO = 3
rows = np.random.default_rng(0).normal(size=(300, 3072)).astype(np.float32)
rows /= np.linalg.norm(rows, axis=1, keepdims=True)
sizes = []
for _ in range(20):
    index = VectorIndex(rows)
    index.query(rows[0], 10)
    index.close()
    sizes.append(int(open("/proc/self/statm").read().split()[1]) * 4096)
print(*sizes)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_closed_index_frees_its_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWING], capture_output=True, text=True, check=True, timeout=120
    )
    sizes = [int(word) for word in done.stdout.split()]
    # Chroma's allocator keeps some memory of the first indexes.
    grown = (sizes[-1] - sizes[11]) / 1e6
    assert grown < 6 * 3.7, f"eight indexes of 3.7 MB left {grown:.0f} MB behind: {sizes}"


def found(seed: int) -> bool:
    """Whether a new index returns each row as its own nearest neighbour."""
    rows = unit_rows(200, 64, seed)
    index = VectorIndex(rows)
    right = all(index.query(rows[position], 1)[0] == [position] for position in range(0, 200, 10))
    index.close()
    return right


def test_an_index_whose_last_text_was_forgotten_keeps_its_width() -> None:
    async def scene() -> None:
        embedder = Ones()
        first = await DenseIndex.open(embedder, ["a", "b"], None)
        empty = await DenseIndex.open(embedder, [], None, first)
        assert empty._index.vectors().shape == (0, 4)
        assert await empty.search("a", 3) == []

    asyncio.run(scene())


class Ones(Embedder):
    """Every text has the same vector."""

    def __init__(self) -> None:
        pass

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        return np.full((len(texts), 4), 0.5, dtype=np.float32)


class Returns(Embedder):
    """Returns the vectors in `rows` for any texts."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        return self.rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.eye(1, 4), r"vectors of shape \(1, 4\) for 2 texts"),
        (np.eye(2, 4)[0], r"vectors of shape \(4,\) for 2 texts"),
        (np.array(None), r"vectors of shape \(\) for 2 texts"),
        (3 * np.eye(2, 4), "not of length 1"),
        (np.full((2, 4), np.nan), "not of length 1"),
    ],
    ids=["one too few", "no rows", "nothing", "not of length 1", "not finite"],
)
def test_an_embedder_of_ones_own_returns_a_unit_vector_for_each_text(
    rows: np.ndarray, message: str
) -> None:
    with pytest.raises(ModelError, match=f"the embedder returned .*{message}"):
        asyncio.run(DenseIndex.open(Returns(rows), ["a", "b"], None))
