from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memeval.retrieval.vectors import ChromaIndex


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
    index = ChromaIndex(rows)
    for query in queries:
        positions, scores = index.query(query, 20)
        assert set(positions) == set(exact(rows, query, 20))
        assert scores == sorted(scores, reverse=True)
        assert np.allclose(scores, rows[positions] @ query, atol=1e-5)
    index.close()


def test_ties_go_to_the_earlier_row_even_across_the_cut() -> None:
    rows = unit_rows(300, 32, 2)
    rows[40:140] = rows[40]
    index = ChromaIndex(rows)
    assert index.query(rows[40], 5)[0] == [40, 41, 42, 43, 44]
    index.close()


def test_a_zero_vector_matches_nothing_and_breaks_nothing() -> None:
    rows = np.vstack([np.zeros((1, 8), dtype=np.float32), np.eye(8, dtype=np.float32)])
    index = ChromaIndex(rows)
    assert index.query(rows[3], 1) == ([3], [1.0])
    assert index.query(np.zeros(8, dtype=np.float32), 3) == ([0, 1, 2], [0.0, 0.0, 0.0])
    index.close()


def test_depth_is_cut_to_the_size_and_empty_indexes_answer_nothing() -> None:
    index = ChromaIndex(np.eye(3, dtype=np.float32))
    assert len(index.query(np.eye(3, dtype=np.float32)[0], 50)[0]) == 3
    assert index.query(np.eye(3, dtype=np.float32)[0], 0) == ([], [])
    index.close()
    assert ChromaIndex(np.zeros((0, 3), dtype=np.float32)).query(
        np.zeros(3, dtype=np.float32), 5
    ) == ([], [])


def test_a_saved_index_answers_identically(tmp_path: Path) -> None:
    rows, queries = unit_rows(500, 128, 3), unit_rows(20, 128, 4)
    index = ChromaIndex(rows)
    index.save(tmp_path / "rows.npy")
    loaded = ChromaIndex.load(tmp_path / "rows.npy")
    assert np.array_equal(loaded.vectors(), rows)
    assert [loaded.query(query, 10) for query in queries] == [
        index.query(query, 10) for query in queries
    ]
    index.close()
    loaded.close()


def test_an_index_leaves_other_clients_of_chroma_alone() -> None:
    import chromadb

    rows = unit_rows(5, 8, 4)
    index = ChromaIndex(rows)
    mine = chromadb.EphemeralClient()
    notes = mine.create_collection("notes", embedding_function=None)
    notes.add(ids=["1"], embeddings=rows[:1])
    other = ChromaIndex(rows)
    index.close()
    other.close()
    assert [collection.name for collection in mine.list_collections()] == ["notes"]
    assert notes.count() == 1
    assert index.query(rows[0], 3) == ([], [])
    mine.delete_collection("notes")


GROWING = """
import numpy as np
from memeval.retrieval.vectors import ChromaIndex

rows = np.random.default_rng(0).normal(size=(1000, 1024)).astype(np.float32)
rows /= np.linalg.norm(rows, axis=1, keepdims=True)
sizes = []
for _ in range(9):
    index = ChromaIndex(rows)
    index.query(rows[0], 10)
    index.close()
    sizes.append(int(open("/proc/self/statm").read().split()[1]) * 4096)
print(*sizes)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_a_dropped_index_gives_its_memory_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWING], capture_output=True, text=True, check=True, timeout=120
    )
    sizes = [int(word) for word in done.stdout.split()]
    grown = (sizes[-1] - sizes[2]) / 1e6
    assert grown < 6 * 4, f"six indexes of 4 MB left {grown:.0f} MB behind: {sizes}"


def test_indexes_of_several_threads_do_not_mix() -> None:
    def found(seed: int) -> bool:
        rows = unit_rows(200, 64, seed)
        index = ChromaIndex(rows)
        right = all(
            index.query(rows[position], 1)[0] == [position] for position in range(0, 200, 10)
        )
        index.close()
        return right

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(found, range(8)))
