"""The offline embedder: compared with scikit-learn, across processes, and on arbitrary text."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memeval.retrieval.embedding.tfidf import DEFAULT_WIDTH, CharTfidfEmbedder

TEXTS = [
    "Ann: I adopted a grey cat called Tofu yesterday",
    "Bob: the pottery class starts on Monday",
    "Ann: running in the park keeps me calm",
    "Bob: my car broke down on the motorway",
    "Ann: tofu, the cat, has broken the pot",
]


def embed(embedder: CharTfidfEmbedder, texts: Sequence[str]) -> Any:
    return asyncio.run(embedder.embed(texts))


def test_rows_are_unit_vectors_of_the_stated_width() -> None:
    vectors = embed(CharTfidfEmbedder().fitted(TEXTS), TEXTS)
    assert vectors.shape == (len(TEXTS), DEFAULT_WIDTH)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


@pytest.mark.slow
def test_similarities_at_a_large_width_equal_scikit_learn() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    reference = vectorizer.fit_transform(TEXTS)
    queries = ["who adopted a cat?", "broken pots and cars", "when does pottery start"]
    expected = (vectorizer.transform(queries) @ reference.T).toarray()
    ours = CharTfidfEmbedder(width=1 << 22).fitted(TEXTS)
    assert np.allclose(embed(ours, queries) @ embed(ours, TEXTS).T, expected, atol=1e-4)


def test_finds_a_word_in_another_form() -> None:
    embedder = CharTfidfEmbedder().fitted(TEXTS)
    similarity = embed(embedder, ["the adoption"]) @ embed(embedder, TEXTS).T
    assert int(np.argmax(similarity)) == 0


def test_fitting_changes_the_vectors_and_the_name() -> None:
    plain = CharTfidfEmbedder()
    one, other = plain.fitted(TEXTS), plain.fitted(TEXTS[:3])
    assert len({plain.name, one.name, other.name}) == 3
    assert one.name == CharTfidfEmbedder().fitted(TEXTS).name
    assert not np.allclose(embed(one, TEXTS), embed(plain, TEXTS), atol=1e-3)


def test_name_contains_the_ngram_lengths_and_the_width() -> None:
    assert CharTfidfEmbedder().name == "char-tfidf/3-5/4096"
    assert CharTfidfEmbedder(width=512).name == "char-tfidf/3-5/512"


def test_an_embedder_survives_pickle() -> None:
    plain = CharTfidfEmbedder(width=256)
    for embedder in (plain, plain.fitted(TEXTS)):
        copy = pickle.loads(pickle.dumps(embedder))
        assert copy.name == embedder.name
        assert np.array_equal(embed(copy, TEXTS), embed(embedder, TEXTS))


@pytest.mark.slow
def test_other_processes_get_the_same_vectors() -> None:
    program = (
        "import asyncio, sys, hashlib\n"
        "from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder\n"
        "e = CharTfidfEmbedder(width=256).fitted(['grey cat', 'a pottery class'])\n"
        "vectors = asyncio.run(e.embed(['the cat class']))\n"
        "digest = hashlib.sha256(vectors.tobytes()).hexdigest()\n"
        "print(e.name, digest, 'sklearn' in sys.modules)\n"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1
    assert runs.pop().strip().endswith("False")


def test_unknown_and_empty_texts_give_the_zero_vector() -> None:
    embedder = CharTfidfEmbedder().fitted(["abc"])
    assert not embed(embedder, ["zzzz", "", "  "]).any()
    assert not embed(CharTfidfEmbedder().fitted([]), ["abc"]).any()
    assert embed(embedder, []).shape == (0, DEFAULT_WIDTH)


def test_width_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="need width"):
        CharTfidfEmbedder(width=0)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=40))
def test_any_text_gives_a_reproducible_unit_or_zero_vector(texts: list[str], query: str) -> None:
    embedder = CharTfidfEmbedder(width=128).fitted(texts)
    vector = embed(embedder, [query])
    assert np.array_equal(vector, embed(CharTfidfEmbedder(width=128).fitted(texts), [query]))
    length = float(np.linalg.norm(vector))
    assert length == 0 or abs(length - 1) < 1e-5


@pytest.mark.slow
@pytest.mark.real_data
def test_beats_bm25_on_locomo(data_dir: Path) -> None:
    """Evidence recall@5 over turns: BM25 has .435, unhashed tf-idf .485."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "perf"))
    try:
        from embedding_width import conversation, hashed_similarity, recall
    finally:
        sys.path.pop(0)
    cases = [
        conversation(raw)
        for raw in json.loads((data_dir / "locomo" / "locomo10.json").read_text(encoding="utf-8"))
    ]
    similarity = hashed_similarity(DEFAULT_WIDTH)
    scores = [score for case in cases for score in recall(similarity(case), case.evidence)]
    assert len(scores) == 1536
    assert np.mean(scores) > 0.475
