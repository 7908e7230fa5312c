"""How figures read."""

from __future__ import annotations

import pytest
from sample_runs import summary

from memeval.report import figures


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "–"),
        (0, "0"),
        (812, "812"),
        (999.4, "999"),
        (999.6, "1.0k"),
        (14_210, "14.2k"),
        (99_960, "100k"),
        (999_600, "1.0M"),
        (3.1e6, "3.1M"),
    ],
)
def test_short_counts(value: float | None, said: str) -> None:
    assert figures.short_count(value) == said
    assert len(said) <= 5


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "unknown"),
        (0, "0"),
        (0.00421, "0.00421"),
        (0.5, "0.5"),
        (1.234, "1.23"),
        (1234.5, "1,234.50"),
    ],
)
def test_costs(value: float | None, said: str) -> None:
    assert figures.dollars(value) == said


@pytest.mark.parametrize(
    ("value", "said"), [(None, "–"), (0.44, "0.4 ms"), (812.4, "812 ms"), (3210, "3.2 s")]
)
def test_durations(value: float | None, said: str) -> None:
    assert figures.milliseconds(value) == said


def test_a_deviation_of_one_repeat_is_a_dash_and_a_deterministic_zero_is_named() -> None:
    deterministic, model = summary(), summary(tags={"deterministic": "false"})
    assert figures.deviation(deterministic, None) == "–"
    assert figures.deviation(deterministic, 0.0) == "0 (deterministic reader)"
    assert figures.deviation(model, 0.0) == "0.0"
    assert figures.deviation(model, 0.0123) == "1.2"


def test_intervals_show_both_ends() -> None:
    assert figures.with_interval(0.376, 0.281, 0.482) == "37.6 [28.1, 48.2]"
    assert figures.with_interval(0.54, None, None) == "54.0"
    assert figures.with_interval(None, None, None) == "–"
    assert figures.span(0.545, 0.646) == "54.5 to 64.6"


def test_flags() -> None:
    assert figures.flags(summary()) == []
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
    assert figures.flags(marked) == [
        "INVALID",
        "imported",
        "own prompt",
        "unpinned",
        "ranks part",
    ]
