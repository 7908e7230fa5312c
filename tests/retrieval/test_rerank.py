from __future__ import annotations

import math

from memeval.retrieval.rerank import LexicalReranker

CORPUS = ["Ann went to Norway", "Ann likes tea", "Ann likes coffee", "Bob likes tea"]


def test_the_formula() -> None:
    def idf(held: int) -> float:
        return math.log(1 + (4 - held + 0.5) / (held + 0.5))

    ((position, score),) = LexicalReranker(CORPUS).rerank("Does Ann like Norway tea?", [(0, 0.4)])
    coverage = (idf(3) + idf(1)) / (idf(3) + idf(1) + idf(2))
    assert position == 0
    assert math.isclose(score, 0.5 * 0.4 + 0.5 * coverage)


def test_a_rare_word_of_the_question_outweighs_a_little_similarity() -> None:
    assert [
        position
        for position, _ in LexicalReranker(CORPUS).rerank(
            "Ann Norway", [(1, 0.5), (2, 0.5), (0, 0.4)]
        )
    ] == [0, 1, 2]


def test_without_a_known_word_the_first_order_stands() -> None:
    candidates = [(2, 0.3), (0, 0.3), (1, 0.1)]
    assert [position for position, _ in LexicalReranker(CORPUS).rerank("zebra?", candidates)] == [
        2,
        0,
        1,
    ]


def test_similarities_outside_the_unit_range_are_cut() -> None:
    assert LexicalReranker(CORPUS).rerank("zebra", [(0, 1.7), (1, -0.2)]) == [(0, 0.5), (1, 0.0)]
