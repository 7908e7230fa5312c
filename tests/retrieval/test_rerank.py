from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from installed import install

from memeval.errors import ModelError, UserError
from memeval.retrieval.rerank import (
    RERANKERS,
    Candidate,
    Ranked,
    Reordering,
    Reranker,
    build_named,
)
from memeval.retrieval.rerank_lexical import LexicalReranker

GROUP = "memeval.rerankers"
CORPUS = ["Ann went to Norway", "Ann likes tea", "Ann likes coffee", "Bob likes tea"]


def lexical(query: str, ranked: Ranked) -> list[tuple[int, float]]:
    return asyncio.run(Reordering(LexicalReranker(), CORPUS).reorder(query, ranked))


def test_score_averages_similarity_and_idf_coverage() -> None:
    def idf(held: int) -> float:
        return math.log(1 + (4 - held + 0.5) / (held + 0.5))

    ((position, score),) = lexical("Does Ann like Norway tea?", [(0, 0.4)])
    coverage = (idf(3) + idf(1)) / (idf(3) + idf(1) + idf(2))
    assert position == 0
    assert math.isclose(score, 0.5 * 0.4 + 0.5 * coverage)


def test_rare_query_word_outweighs_a_small_difference_in_similarity() -> None:
    assert [position for position, _ in lexical("Ann Norway", [(1, 0.5), (2, 0.5), (0, 0.4)])] == [
        0,
        1,
        2,
    ]


def test_query_without_known_words_keeps_the_order() -> None:
    candidates = [(2, 0.3), (0, 0.3), (1, 0.1)]
    assert [position for position, _ in lexical("zebra?", candidates)] == [
        2,
        0,
        1,
    ]


def test_similarities_are_clipped_to_0_and_1() -> None:
    assert lexical("zebra", [(0, 1.7), (1, -0.2)]) == [(0, 0.5), (1, 0.0)]


class Shortest(Reranker):
    """A custom reranker that prefers short texts."""

    async def scores(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        return [-float(len(candidate.text)) for candidate in candidates]


class Scripted(Reranker):
    """Returns the scores in `said`."""

    said: Sequence[float] = ()

    async def scores(self, query: str, candidates: Sequence[Candidate]) -> Sequence[float]:
        return self.said


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that adds the reranker `shortest`, and another one under a built-in name."""
    points = dict.fromkeys(("shortest", "endpoint"), f"{__name__}:Shortest")
    install(tmp_path, "my-rerankers", {GROUP: points})
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", [f"{__name__}:Shortest", "shortest"])
def test_custom_reranker_is_found_by_class_path_and_by_name(name: str) -> None:
    reranker = build_named(name)
    assert isinstance(reranker, Shortest)
    ranked = [(0, 0.9), (1, 0.5), (3, 0.1)]
    reordered = asyncio.run(Reordering(reranker, CORPUS).reorder("tea", ranked))
    assert reordered == [(1, -13.0), (3, -13.0), (0, -18.0)]


@pytest.mark.usefixtures("installed")
def test_package_cannot_replace_a_built_in_reranker() -> None:
    assert isinstance(build_named("lexical"), LexicalReranker)
    assert build_named("none") is None
    with pytest.raises(UserError, match="reranker=endpoint is defined by two packages"):
        RERANKERS.load("endpoint")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lexicol", r"unknown reranker 'lexicol'\. Did you mean: lexical\?"),
        ("shortes", "Did you mean: shortest"),
        (f"{__name__}:CORPUS", "CORPUS"),
        ("nowhere.to_be_found:Thing", "no module named 'nowhere'"),
    ],
)
def test_unknown_reranker_is_named(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_named(name)


TWO_LABELS = np.zeros((2, 2), dtype=np.float32)
"""What a cross-encoder with two labels returns for two texts."""


@pytest.mark.parametrize(
    "said", [(), (1.0,), (1.0, float("nan")), (1.0, float("inf")), TWO_LABELS, None]
)
def test_wrong_number_of_scores_or_non_finite_score_fails_the_call(said: Any) -> None:
    broken = Scripted()
    broken.said = said
    with pytest.raises(ModelError, match="the reranker returned"):
        asyncio.run(Reordering(broken, CORPUS).reorder("tea", [(0, 0.5), (1, 0.4)]))


def test_scores_may_come_from_an_iterator() -> None:
    lazy = Scripted()
    lazy.said = map(float, (1, 2))  # type: ignore[assignment]
    ranked = [(0, 0.5), (1, 0.4)]
    assert asyncio.run(Reordering(lazy, CORPUS).reorder("tea", ranked)) == [(1, 2.0), (0, 1.0)]


def test_only_the_best_are_reordered_and_the_rest_lose_their_scores() -> None:
    ranked = [(0, 0.9), (3, 0.5), (1, 0.4)]
    reordered = asyncio.run(Reordering(Shortest(), CORPUS).reorder_best("tea", ranked, 2))
    assert reordered == [(3, -13.0), (0, -18.0), (1, None)]
