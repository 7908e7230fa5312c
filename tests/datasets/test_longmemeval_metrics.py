from __future__ import annotations

from dataclasses import replace
from math import log2
from pathlib import Path

import pytest
from sample_records import record, verdict

from memeval.datasets.locate import build
from memeval.datasets.longmemeval.metrics import (
    official_dcg,
    official_means,
    official_metrics,
    official_ndcg,
)
from memeval.records import EvalQuestion, Label, Status
from memeval.statistics.means import mean

SESSION_OF = {"s1:1": "s1", "s1:3": "s1", "s2:1": "s2", "s3:1": "s3", "s3:3": "s3", "s3:5": "s3"}
SESSIONS = [("s3:1", "s3:3", "s3:5"), ("s1:1", "s1:3"), ("s2:1",)]


def test_the_first_two_ranks_weigh_the_same() -> None:
    assert official_dcg([1]) == official_dcg([2]) == 1.0
    assert official_dcg([1, 3]) == 1 + 1 / log2(3)
    assert official_ndcg([2], 1, 5) == 1.0
    assert official_ndcg([3], 1, 5) == 1 / log2(3)
    assert official_ndcg([1, 4], 3, 3) == 1 / (2 + 1 / log2(3))
    assert official_ndcg([], 0, 3) == 0.0


def test_official_metrics_of_a_ranking_of_sessions() -> None:
    found = official_metrics(SESSIONS, ["s1:1", "s2:1"], SESSION_OF)
    assert [found[f"official/session/recall_any_at_{k}"] for k in (1, 3, 50)] == [0.0, 1.0, 1.0]
    assert [found[f"official/session/recall_all_at_{k}"] for k in (1, 3)] == [0.0, 1.0]
    assert found["official/session/ndcg_any_at_3"] == pytest.approx((1 + 1 / log2(3)) / 2)
    assert not any(name.startswith("official/turn/") for name in found)


def test_a_ranking_of_turns_is_measured_by_sessions_too() -> None:
    """s3 counts twice, once for its flagged turn, so the third session appears at the third turn
    and not at the fourth.
    """
    ranking = [("s3:1",), ("s3:3",), ("s1:1",), ("s2:1",), ("s1:3",), ("s3:5",)]
    found = official_metrics(ranking, ["s3:3", "s2:1"], SESSION_OF)
    assert found["official/turn/recall_any_at_1"] == 0.0
    assert found["official/turn/recall_any_at_3"] == 1.0
    assert found["official/session/recall_any_at_1"] == 0.0
    assert found["official/session/recall_all_at_3"] == 0.0
    assert found["official/session/ndcg_any_at_3"] == 1 / 2
    assert found["official/session/recall_all_at_5"] == 1.0
    assert found["official/session/ndcg_any_at_5"] == (1 + 1 / log2(4)) / 2


def test_evidence_that_is_returned_again_gains_once() -> None:
    ranking = [("s2:1",), ("s2:1",), ("s3:1",), ("s3:3",)]
    found = official_metrics(ranking, ["s3:3", "s2:1"], SESSION_OF)
    assert found["official/turn/recall_all_at_3"] == 0.0
    assert found["official/turn/ndcg_any_at_3"] == 1 / 2
    assert found["official/session/ndcg_any_at_1"] == 1.0
    assert found["official/session/recall_all_at_3"] == 1.0

    found = official_metrics([*SESSIONS[:2], *SESSIONS[1:]], ["s1:1", "s2:1"], SESSION_OF)
    assert found["official/session/recall_all_at_3"] == 0.0
    assert found["official/session/ndcg_any_at_3"] == 1 / 2


def test_short_ranking_has_no_figures_beyond_its_length() -> None:
    found = official_metrics([("s3:1",), ("s1:1",), ("s2:1",)], ["s2:1"], SESSION_OF)
    assert found["official/turn/recall_any_at_3"] == 1.0
    assert found["official/turn/recall_any_at_5"] is None
    assert found["official/session/recall_any_at_3"] == 1.0
    assert found["official/session/recall_any_at_5"] is None


@pytest.mark.parametrize("ranking", [[], [("s1:1", "s1:3"), ("s3:1", "s3:3")], [("s1:1", "s2:1")]])
def test_chunks_that_are_neither_turns_nor_sessions_have_no_metrics(
    ranking: list[tuple[str, ...]],
) -> None:
    assert official_metrics(ranking, ["s1:1"], SESSION_OF) == {}


def test_means_leave_out_unmeasured_records() -> None:
    name = "official/turn/recall_any_at_5"
    rows = [
        record(metrics=metrics)
        for metrics in ({name: 1.0, "bleu1": 0.3}, {}, {name: 0.0}, {name: None})
    ]
    assert official_means(rows) == {name: 0.5}
    assert official_means([record(metrics={"bleu1": 0.3})]) == {}


def test_mean_score_counts_only_scored_records() -> None:
    rows = [record(verdict=verdict(label)) for label in Label]
    rows += [
        record(status=Status.JUDGE_FAILED, verdict=None),
        record(status=Status.UNPARSED, verdict=verdict(Label.UNSCORED)),
    ]
    assert mean(row.score for row in rows) == pytest.approx(1 / 3)
    assert mean(row.score for row in rows[3:]) is None


def test_abstention_and_updates_have_their_own_accuracy() -> None:
    wrong = verdict(Label.WRONG)
    rows = [
        record(category="knowledge-update"),
        record(category="knowledge-update", verdict=wrong),
        record(category="multi-session", verdict=wrong),
        record(category="multi-session", answerable=False),
    ]
    assert build("longmemeval_s", Path("/nowhere")).measures(rows) == {
        "abstention_accuracy": 1.0,
        "knowledge_update_accuracy": 0.5,
    }


def test_official_metrics_are_those_of_user_turns_and_answerable_questions() -> None:
    ranking, question = [("s1:1",), ("s2:1",)], EvalQuestion("q", "Who?", "x", ("Ana",))
    cited = replace(question, evidence=("s1:1",))
    user = build("longmemeval_s", Path("/nowhere"), roles="user")
    assert user.ranking_metrics(cited, ranking, SESSION_OF) == official_metrics(
        ranking, ["s1:1"], SESSION_OF
    )
    for other in (question, replace(cited, answerable=False)):
        assert user.ranking_metrics(other, ranking, SESSION_OF) == {}

    both = build("longmemeval_s", Path("/nowhere"))
    assert both.ranking_metrics(cited, ranking, SESSION_OF) == {}
