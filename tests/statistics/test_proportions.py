from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.statistics.proportions import mcnemar_p, wilson_interval


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [(5, 0, 0.0625), (5, 1, 0.21875), (2, 1, 1.0), (8, 3, 0.2265625), (3, 8, 0.2265625), (0, 0, 1)],
)
def test_mcnemar_p_matches_reference_values(first: int, second: int, p: float) -> None:
    assert mcnemar_p(first, second) == p


@given(st.integers(0, 200), st.integers(0, 200))
def test_mcnemar_p_equals_the_binomial_test(first: int, second: int) -> None:
    from scipy import stats

    if first + second:
        expected = stats.binomtest(first, first + second, 0.5).pvalue
        assert mcnemar_p(first, second) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    [(2, 80, 0.0068829, 0.0866443), (211, 240, 0.8318501, 0.9145365)],
)
def test_wilson_interval_matches_reference_values(
    successes: int, count: int, low: float, high: float
) -> None:
    assert wilson_interval(successes, count) == pytest.approx((low, high), abs=5e-8)


@given(st.integers(1, 300), st.data())
def test_wilson_interval_equals_scipys(count: int, data: st.DataObject) -> None:
    from scipy import stats

    successes = data.draw(st.integers(0, count))
    expected = stats.binomtest(successes, count).proportion_ci(method="wilson")
    assert wilson_interval(successes, count) == pytest.approx(tuple(expected), abs=1e-12)


@pytest.mark.parametrize(("successes", "count"), [(0, 0), (3, 2), (-1, 2)])
def test_invalid_share_is_refused(successes: int, count: int) -> None:
    with pytest.raises(ValueError, match="is not a share"):
        wilson_interval(successes, count)
