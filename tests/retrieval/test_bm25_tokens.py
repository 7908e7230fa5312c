"""How BM25 splits texts into tokens, and how it orders equal scores."""

from __future__ import annotations

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from memeval.retrieval.bm25 import Bm25Index

TEXTS = [
    "The tern, a small boat.",
    "a small  tern",
    "Tern Tern",
    "",
    "the sea is cold",
    "no more of it",
    "salt and wind",
]


def test_space_tokenizer_keeps_case_punctuation_and_empty_words() -> None:
    model = BM25Okapi([text.split(" ") for text in TEXTS])
    for query in ("small tern", "Tern", "a  boat."):
        assert Bm25Index(TEXTS, "space").scores(query) == pytest.approx(
            model.get_scores(query.split(" "))
        )
    assert Bm25Index(TEXTS, "space").scores("tern")[0] == 0.0 < Bm25Index(TEXTS).scores("tern")[0]


def test_ties_are_ordered_by_position_or_reversed() -> None:
    index = Bm25Index(TEXTS)
    assert index.ranking("wind", "position")[0] == [6, 0, 1, 2, 3, 4, 5]
    assert index.ranking("wind", "reversed")[0] == np.argsort(index.scores("wind"))[::-1].tolist()
    assert index.ranking("wind", "reversed")[0][0] == 6 and sorted(
        index.ranking("wind", "reversed")[0]
    ) == list(range(7))


def test_corpus_of_empty_texts_keeps_its_order() -> None:
    assert Bm25Index(["", ""], "space").ranking("x")[0] == [0, 1]
    assert Bm25Index([], "space").ranking("x") == ([], [])
