"""Titles, units and explanations of metrics."""

from __future__ import annotations

import pytest

from memeval.metrics.metric import PAGE, POINTS, REPORT, SHOW, TABLE, TILE, Metric
from memeval.metrics.registry import metrics
from memeval.metrics.retrieval import paper_title
from memeval.metrics.tools import CALLS, COUNTED


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("recall_at_10", "turn recall@10"),
        ("session_recall_all_at_5", "session all-recall@5"),
        ("ranking_mrr", "turn MRR, whole ranking"),
        ("ranking_session_ndcg_at_20", "session nDCG@20, whole ranking"),
        ("session_first_rank", "session first rank"),
    ],
)
def test_paper_title_names_the_kind_of_evidence(name: str, title: str) -> None:
    assert paper_title(name) == title


@pytest.mark.parametrize(
    ("name", "title", "columns"),
    [
        ("steps", "steps", (PAGE,)),
        ("tool_calls", "tool calls", (TABLE, PAGE)),
        ("evidence_seen", "evidence seen", (TABLE, PAGE)),
        ("write_calls", "writer's calls", (PAGE,)),
        ("stored_repeated", "stored twice", (PAGE,)),
    ],
)
def test_metric_has_the_same_title_in_all_views(
    name: str, title: str, columns: tuple[str, ...]
) -> None:
    metric = metrics()[name]
    assert dict(metric.columns) == dict.fromkeys(columns, title)
    assert dict(metric.lines) == {SHOW: title, REPORT: title}


def test_rate_is_shown_only_if_it_has_a_heading() -> None:
    breach, known = metrics()["breach_rate"], metrics()["known_rate/answer"]
    assert dict(breach.columns) == {TABLE: "breach", PAGE: "breach"}
    assert dict(breach.lines) == dict.fromkeys((SHOW, REPORT, TILE), "breach rate")
    assert not known.columns and not known.lines and not known.texts


def test_metrics_have_their_units() -> None:
    units = [metrics()[name].unit for name in ("tool_calls", "writes", "without_call")]
    assert units == [CALLS, COUNTED, POINTS]


def test_metrics_shown_only_if_measured_are_marked_optional() -> None:
    everywhere = {TABLE, PAGE, SHOW, REPORT}
    assert set(metrics()["steps"].optional) == everywhere
    assert set(metrics()["stored_growth"].optional) == {SHOW, REPORT}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("stored_repeated", "items that repeat another item word for word"),
        ("without_call", "questions answered without any call"),
        ("obeyed_rate", "answers that obey a stored text"),
    ],
)
def test_heading_has_a_hint(name: str, hint: str) -> None:
    metric: Metric = metrics()[name]
    assert metric.hint == hint
    assert metric.more_is_better is False
