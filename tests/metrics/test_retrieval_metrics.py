from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.datasets.locomo.metrics import official_evidence_recall
from memeval.metrics.retrieval import (
    EvidenceRanks,
    evidence_ranks,
    hit_at,
    ndcg_at,
    ranks_of,
    recall_all_at,
    recall_at,
    reciprocal_rank,
    retrieval_metrics,
    session_ranking,
)

RANKS = st.lists(st.none() | st.integers(1, 30), max_size=6)


def test_rank_is_that_of_the_first_chunk_that_covers_the_turn() -> None:
    ranking = [("a", "b"), ("c",), ("b", "d")]
    assert evidence_ranks(ranking, ["b", "d", "x", "c"]) == [1, 3, None, 2]


def test_recall_at_k_is_none_if_top_k_is_smaller() -> None:
    ranks = EvidenceRanks((2,), (1,))
    few, many = (retrieval_metrics(ranks, ranks, top_k) for top_k in (3, 10))
    assert (few["recall_at_10"], many["recall_at_10"]) == (None, 1.0)
    assert retrieval_metrics(ranks, None, 3)["recall_at_10"] is None


def test_metrics_equal_values_computed_by_hand() -> None:
    ranks = [2, None, 7]
    assert recall_at(ranks, 1) == 0.0
    assert recall_at(ranks, 5) == pytest.approx(1 / 3)
    assert recall_at(ranks, 10) == pytest.approx(2 / 3)
    assert (hit_at(ranks, 1), hit_at(ranks, 2)) == (0.0, 1.0)
    assert (recall_all_at(ranks, 100), recall_all_at([2, 7], 7), recall_all_at([2, 7], 6)) == (
        0.0,
        1.0,
        0.0,
    )
    assert reciprocal_rank(ranks) == 0.5
    assert reciprocal_rank([None]) == 0.0
    assert ndcg_at(ranks, 10) == pytest.approx((1 / log2(3) + 1 / 3) / (1 + 1 / log2(3) + 1 / 2))
    assert ndcg_at([11], 10) == 0.0


def test_evidence_in_the_same_chunk_counts_each_but_ndcg_is_at_most_1() -> None:
    assert ndcg_at([1, 1], 10) == 1.0
    assert ndcg_at([3, 3], 10) == pytest.approx(1 / (1 + 1 / log2(3)))


def test_ideal_ranking_of_ndcg_has_at_most_k_ranks() -> None:
    assert ndcg_at(list(range(1, 13)), 10) == pytest.approx(1.0)


def test_all_metrics_without_evidence_are_none() -> None:
    none = EvidenceRanks((), ())
    for shown, ranking in ((none, none), (None, None)):
        assert set(retrieval_metrics(shown, ranking, 20).values()) == {None}


def test_names_of_all_metrics() -> None:
    one = [f"{name}_at_{k}" for name in ("recall", "hit", "recall_all") for k in (1, 5, 10, 20)] + [
        "mrr",
        "ndcg_at_10",
    ]
    one += [f"session_{name}" for name in one]
    names = list(retrieval_metrics(None, None, None))
    assert names == [*one, "recall_shown", *(f"ranking_{name}" for name in one)]


def test_evidence_that_the_reader_was_not_shown_is_not_recalled() -> None:
    ranking = EvidenceRanks((1, 4, 12, None), (1, 3))
    shown = EvidenceRanks((1, None, None, None), (1, None))
    metrics = retrieval_metrics(shown, ranking, 3)
    assert (metrics["recall_at_1"], metrics["recall_shown"], metrics["mrr"]) == (0.25, 0.25, 1.0)
    assert metrics["session_recall_at_1"] == 0.5
    for name, value in metrics.items():
        if name.endswith(("_at_5", "_at_10", "_at_20")) and not name.startswith("ranking_"):
            assert value is None, name

    assert [metrics[f"ranking_recall_at_{k}"] for k in (1, 5, 10, 20)] == [0.25, 0.5, 0.5, 0.75]
    assert metrics["ranking_session_recall_at_5"] == 1.0


def test_evidence_not_shown_within_top_k_counts_as_missed() -> None:
    ranking, shown = EvidenceRanks((2, 7), (1,)), EvidenceRanks((2, None), (1,))
    metrics = retrieval_metrics(shown, ranking, 10)
    assert (metrics["recall_at_10"], metrics["ranking_recall_at_10"]) == (0.5, 1.0)
    assert metrics["recall_at_20"] is None


def test_turn_and_session_metrics_are_not_mixed_up() -> None:
    metrics = retrieval_metrics(EvidenceRanks((None,), (1,)), None, 20)
    assert (
        metrics["recall_at_20"],
        metrics["session_recall_at_1"],
        metrics["mrr"],
        metrics["session_mrr"],
    ) == (0.0, 1.0, 0.0, 1.0)


def test_session_ranks_at_its_first_retrieved_turn() -> None:
    sessions = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}.__getitem__
    assert session_ranking([("b1",), ("a2", "c1"), ("a1",)], sessions) == [("b",), ("a",), ("c",)]
    assert ranks_of(
        [("b1",), ("a2", "c1"), ("a1",)], ["a1", "a2", "c1"], sessions
    ) == EvidenceRanks((3, 2, 2), (2, 3))


def test_turn_that_the_case_lacks_raises_a_key_error() -> None:
    with pytest.raises(KeyError):
        session_ranking([("ghost",)], {"a": "s"}.__getitem__)


@given(RANKS, st.integers(1, 30))
def test_metrics_grow_with_k_and_bound_each_other(ranks: list[int | None], k: int) -> None:
    if not ranks:
        return
    everything, some, recall = recall_all_at(ranks, k), hit_at(ranks, k), recall_at(ranks, k)
    assert everything is not None and some is not None and recall is not None
    assert 0 <= everything <= recall <= some <= 1
    wider, gain = recall_at(ranks, k + 1), ndcg_at(ranks, k)
    assert wider is not None and gain is not None
    assert recall <= wider
    assert 0 <= gain <= 1


@pytest.mark.parametrize(
    ("retrieved", "cited", "turns", "sessions"),
    [
        ([["D1:1"], ["D2:3", "D2:4"]], ["D1:1", "D2:4"], 1.0, 1.0),
        ([["D1:1"], ["D2:3"]], ["D1:1", "D2:4"], 0.5, 1.0),
        ([["D8:6"], ["D9:17"]], ["D8:6; D9:17"], 0.0, 1.0),
        ([["D1:1"]], ["D1:1", "D1:1", "D3:2"], 2 / 3, 2 / 3),
        ([["D30:5"]], ["D30:05", "D"], 0.0, 0.5),
        ([["D1:1"]], [], 1.0, 1.0),
        ([], ["D1:1"], 0.0, 0.0),
        ([[]], [], 1.0, 1.0),
    ],
)
def test_evidence_recall_by_locomos_official_rule(
    retrieved: list[list[str]], cited: list[str], turns: float, sessions: float
) -> None:
    assert official_evidence_recall(retrieved, cited) == pytest.approx(turns)
    assert official_evidence_recall(retrieved, cited, sessions=True) == pytest.approx(sessions)
