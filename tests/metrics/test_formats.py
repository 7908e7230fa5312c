"""How figures are written."""

from __future__ import annotations

import pytest

from memeval.metrics import formats


@pytest.mark.parametrize(
    ("value", "text"),
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
def test_short_count_has_at_most_five_characters(value: float | None, text: str) -> None:
    assert formats.short_count(value) == text
    assert len(text) <= 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (0, "0"),
        (0.00421, "0.00421"),
        (0.5, "0.5"),
        (1.234, "1.23"),
        (1234.5, "1,234.50"),
    ],
)
def test_costs(value: float | None, text: str) -> None:
    assert formats.dollars(value) == text


def test_a_small_cost_is_not_zero_in_mlflow() -> None:
    assert list(map(formats.digits, (0, 0.0000452, 0.0123, 0.672))) == [
        "$0.00",
        "$0.0000452",
        "$0.0123",
        "$0.67",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0477, "0.048 ms"), (0.44, "0.4 ms"), (812.4, "812 ms"), (3210, "3.2 s")],
)
def test_durations(value: float | None, text: str) -> None:
    assert formats.milliseconds(value) == text


def test_intervals_show_both_ends() -> None:
    assert formats.with_interval(0.376, 0.281, 0.482) == "37.6 [28.1, 48.2]"
    assert formats.with_interval(0.54, None, None) == "54.0"
    assert formats.with_interval(None, None, None) == "–"
    assert formats.span(0.545, 0.646) == "54.5 to 64.6"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.041, "points", "+4.1"),
        (-0.006, "points", "−0.6"),
        (-0.0001, "points", "−0.01"),
        (0.00049, "points", "+0.05"),
        (1e-5, "points", "+0.001"),
        (-1e-17, "points", "−0.0"),
        (0.0, "points", "0.0"),
        (0.0012, "$", "+0.0012"),
        (14_210.0, "tokens", "+14,210"),
        (2.98e-5, "$", "+0.0000298"),
        (None, "ms", "–"),
        (-0.0477, "ms", "−0.048"),
        (0.0, "ms", "0.0"),
    ],
)
def test_signed_figure_with_its_unit(value: float | None, unit: str, text: str) -> None:
    assert formats.figure(value, unit, signed=True) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (None, "–"),
        (0.0004, "<.001"),
        (102 / 2048, ".050"),
        (103 / 2048, ">.050"),
        (0.0625, ".062"),
        (1.0, "1"),
    ],
)
def test_probabilities(p: float | None, text: str) -> None:
    assert formats.probability(p) == text


def test_coverage_below_a_minimum_never_looks_like_it() -> None:
    """Of 1,540 questions, 16 without a score are too many."""
    shares = (1, 1539 / 1540, 0.99, 1524 / 1540, (0.985 + 0.987) / 2, None)
    assert list(map(formats.coverage_percent, shares)) == [
        "100.0",
        "99.9",
        "99.0",
        "98.9",
        "98.6",
        "–",
    ]


def test_calls_from_the_cache_are_counted_only_if_there_are_any() -> None:
    assert formats.paid_calls(2, 0, 0.5) == "model calls: 2; cost $ 0.5"
    assert formats.paid_calls(2, 1, None) == (
        "model calls: 2, 1 of them from the cache; cost $ unknown"
    )
