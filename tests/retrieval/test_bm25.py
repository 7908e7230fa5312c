from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from memeval.retrieval.bm25 import Bm25Index
from memeval.text.words import search_terms as terms

WORDS = st.lists(
    st.sampled_from("the cat dog Ann bob 7 well-known café run 数据中心 中心网络 , !".split()),
    max_size=12,
).map(" ".join)


def reference(texts: list[str], query: str) -> np.ndarray:
    return np.asarray(BM25Okapi([terms(text) for text in texts]).get_scores(terms(query)))


def test_terms_are_lower_case_words_and_numbers() -> None:
    assert terms("Ann's WELL-known 7th café!") == ["ann", "s", "well", "known", "7th", "café"]


@pytest.mark.slow
@given(st.lists(WORDS, min_size=1, max_size=12), WORDS)
def test_scores_and_order_are_those_of_rank_bm25(texts: list[str], query: str) -> None:
    if not any(terms(text) for text in texts):
        return
    expected = reference(texts, query)
    index = Bm25Index(texts)
    assert index.scores(query).tolist() == expected.tolist()
    order, scores = index.ranking(query)
    assert order == sorted(range(len(texts)), key=lambda position: (-expected[position], position))
    assert scores == [expected[position] for position in order]
    for most in range(1, len(texts) + 1):
        assert index.ranking(query, most=most)[0] == order[:most]

    assert index.ranking(query, "reversed")[0] == np.argsort(expected)[::-1].tolist()


def test_term_in_most_documents_keeps_the_floor_of_rank_bm25() -> None:
    texts = ["Ann: tea", "Ann: coffee", "Ann: water", "Bob: tea"]
    assert Bm25Index(texts).scores("ann").tolist() == reference(texts, "ann").tolist()
    assert Bm25Index(texts).scores("ann")[0] > 0


@pytest.mark.parametrize("texts", [[], [""], ["", "!!!"]])
def test_documents_without_terms_score_zero(texts: list[str]) -> None:
    order, scores = Bm25Index(texts).ranking("anything")
    assert order == list(range(len(texts)))
    assert scores == [0.0] * len(texts)


@pytest.mark.parametrize("query", ["", "?!", "unheard"])
def test_query_without_matches_keeps_the_order(query: str) -> None:
    assert Bm25Index(["a b", "c", "d e f"]).ranking(query) == ([0, 1, 2], [0.0, 0.0, 0.0])


def test_single_document_is_found() -> None:
    assert Bm25Index(["only this"]).ranking("this")[0] == [0]


def test_equal_scores_are_ordered_by_position() -> None:
    assert Bm25Index(["x y", "same words", "z", "same words", "t", "u"]).ranking("words")[0][
        :2
    ] == [1, 3]


@pytest.mark.parametrize("block", [1, 7, 20, 1 << 16])
def test_scores_are_those_of_rank_bm25_when_terms_are_asked_again(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memeval.retrieval.bm25.BLOCK", block)
    texts = [f"Ann {number % 3} {' '.join('abcdefg'[number % 5 :])}" for number in range(20)]
    texts.insert(0, "often " * 300)
    index = Bm25Index(texts)
    for query in ("ann", "0 2", "a b c d e f g", "ann 2 a a", "often b"):
        assert index.scores(query).tolist() == reference(texts, query).tolist()
        for ties in ("position", "reversed"):
            order, scores = index.ranking(query, ties)
            assert index.ranking(query, ties, scored=2, most=5) == (order[:5], scores[:2])


def test_index_stores_two_numbers_per_term_of_a_document() -> None:
    texts = [
        " ".join(str((7 * number + word) % 211) for word in range(12)) for number in range(5000)
    ]
    Bm25Index(texts[:10]).scores("7")

    tracemalloc.start()
    index = Bm25Index(texts)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert index.scores("7").any()
    assert kept < 1.4 * (4 + 4) * 12 * len(texts)
