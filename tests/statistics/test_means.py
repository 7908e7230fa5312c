from __future__ import annotations

import subprocess
import sys
from math import sqrt

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memeval.statistics.means import bounds, clustered_interval, design_effect, mean, sample_std

SCORES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 4)), min_size=2, max_size=30
)


def test_nothing_measured_is_none() -> None:
    assert (
        mean([])
        is mean([None])
        is sample_std([])
        is sample_std([0.3])
        is sample_std([0.3, None])
        is bounds([])
        is None
    )
    assert clustered_interval([], []) is design_effect([], []) is None


def test_unscored_values_are_left_out_of_a_mean() -> None:
    assert mean([1.0, None, 0.0, 1.0]) == pytest.approx(2 / 3)
    assert sample_std([1.0, None, 3.0]) == pytest.approx(sqrt(2))


def test_the_interval_by_hand() -> None:
    """Mean 4/6; residual sums 1/3 (1, 1, 0 less 2), 1/3 … : clusters a = 1 1 0, b = 1, c = 1 0."""
    interval = clustered_interval([1, 1, 0, 1, 1, 0], list("aaabcc"))
    assert interval is not None
    residuals = [2 - 3 * 2 / 3, 1 - 2 / 3, 1 - 2 * 2 / 3]
    se = sqrt(3 / 2 * sum(r * r for r in residuals)) / 6
    assert interval.mean == pytest.approx(2 / 3)
    assert interval.se == pytest.approx(se)
    assert interval.low == pytest.approx(2 / 3 - 4.302652729911275 * se)
    assert interval.high == 1.0


def test_student_t_of_ten_clusters_has_nine_degrees_of_freedom() -> None:
    values, clusters = [0.4, 0.6] * 10, [index // 2 for index in range(20)]
    values[0] = 0.5
    interval = clustered_interval(values, clusters)
    assert interval is not None
    assert (interval.high - interval.mean) / interval.se == pytest.approx(2.2621571627409915)


def test_fewer_than_two_clusters_have_no_interval() -> None:
    assert clustered_interval([1.0, 0.0], ["a", "a"]) is None
    assert clustered_interval([1.0, None], ["a", "b"]) is None


def test_clusters_must_be_as_many_as_values() -> None:
    with pytest.raises(ValueError, match="zip"):
        clustered_interval([1.0, 0.0], ["a"])


@given(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=2, max_size=20))
def test_clusters_of_one_give_the_textbook_error(values: list[float]) -> None:
    interval, std = clustered_interval(values, range(len(values))), sample_std(values)
    assert interval is not None and std is not None
    assert interval.se == pytest.approx(std / sqrt(len(values)))


@given(SCORES)
def test_the_interval_holds_the_mean_and_stays_between_0_and_1(
    rows: list[tuple[float, int]],
) -> None:
    values, clusters = [value for value, _ in rows], [cluster for _, cluster in rows]
    assume(len(set(clusters)) > 1)
    interval = clustered_interval(values, clusters)
    assert interval is not None
    assert 0 <= interval.low <= interval.mean <= interval.high <= 1


def test_doubling_every_answer_within_its_case_doubles_the_design_effect() -> None:
    values, clusters = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0], list(range(6))
    once, twice = design_effect(values, clusters), design_effect(values * 2, clusters * 2)
    assert once == pytest.approx(1.0)
    assert twice == pytest.approx(2.0 * 11 / 12 * 6 / 5)


def test_equal_values_have_no_design_effect() -> None:
    assert design_effect([1.0, 1.0], ["a", "b"]) is None


def test_bounds_count_the_unscored_as_wrong_and_as_right() -> None:
    assert bounds([1.0, None, 0.0, None]) == (0.25, 0.75)
    assert bounds([1.0, 0.0]) == (0.5, 0.5)


def test_scipy_stats_is_not_loaded() -> None:
    code = (
        "import sys; from memeval.statistics.means import clustered_interval; assert 'scipy' "
        "not in sys.modules;"
        "clustered_interval([1, 0], 'ab'); assert 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
