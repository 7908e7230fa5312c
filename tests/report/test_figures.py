"""Flags and deviations of a run, in words."""

from __future__ import annotations

from sample_runs import summary

from memeval.metrics.accuracy import deviation
from memeval.report.flags import flags


def test_a_deviation_of_one_repeat_is_a_dash_and_a_deterministic_zero_is_named() -> None:
    deterministic, model = summary(), summary(tags={"deterministic": "false"})
    assert deviation(deterministic, None) == "–"
    assert deviation(deterministic, 0.0) == "0 (deterministic reader)"
    assert deviation(model, 0.0) == "0.0"
    assert deviation(model, 0.0123) == "1.2"


def test_flags_of_a_run_are_listed_in_order() -> None:
    assert flags(summary()) == []
    marked = summary(
        valid=False,
        tags={
            "imported": "true",
            "own_prompt": "true",
            "data_pinned": "false",
            "ranks_part": "true",
            "deterministic": "true",
        },
    )
    assert flags(marked) == [
        "INVALID",
        "imported",
        "own prompt",
        "unpinned",
        "ranks part",
    ]
