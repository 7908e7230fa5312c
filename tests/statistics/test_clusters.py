from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from vectors import CLUSTERS, A, B, C, minus

from memeval.statistics.clusters import (
    cluster_sums,
    clustered_mean,
    clustered_se,
    detectable_difference,
    independent_se,
)
from memeval.statistics.student import quantile

ROWS = st.lists(
    st.tuples(st.sampled_from([-1.0, 0.0, 1 / 3, 1.0]), st.integers(0, 5)), min_size=2, max_size=40
)


@pytest.mark.parametrize(
    ("differences", "mean", "sums", "se", "independent"),
    [
        (minus(A, B), 0.25, [1, 1, 1, 1, 1], 0.0, 0.09933992677987827),
        (minus(C, B), 0.20, [1, 0, 0, 1, 2], 0.09354143466934854, 0.11697953037312035),
        (minus(A, C), 0.05, [0, 1, 1, 0, -1], 0.09354143466934853, 0.08810878443570108),
    ],
)
def test_the_worked_example(
    differences: list[float], mean: float, sums: list[float], se: float, independent: float
) -> None:
    found = clustered_mean(differences, CLUSTERS)
    assert found is not None
    assert (found.count, found.groups) == (20, 5)
    assert found.mean == pytest.approx(mean, abs=1e-15)
    assert list(cluster_sums(differences, CLUSTERS).values()) == sums
    assert found.se == pytest.approx(se, rel=1e-14)
    assert found.independent_se == pytest.approx(independent, rel=1e-14)


def test_the_intervals_of_the_worked_example() -> None:
    c_b, a_c = clustered_mean(minus(C, B), CLUSTERS), clustered_mean(minus(A, C), CLUSTERS)
    assert c_b and a_c
    assert (c_b.low, c_b.high) == pytest.approx((-0.059712658420891906, 0.45971265842089193))
    assert (a_c.low, a_c.high) == pytest.approx((-0.20971265842089193, 0.3097126584208919))


def test_an_error_of_0_gives_no_interval_and_the_mde_of_independent_questions() -> None:
    found = clustered_mean(minus(A, B), CLUSTERS)
    assert found and found.se == 0.0
    assert found.low is found.high is found.half_width is None
    assert found.mde_from_independent
    factor = float(stats.t.ppf(0.975, 4) + stats.t.ppf(0.8, 4))
    assert found.mde == pytest.approx(factor * 0.09933992677987827)


def test_the_mde_takes_the_larger_error() -> None:
    c_b, a_c = clustered_mean(minus(C, B), CLUSTERS), clustered_mean(minus(A, C), CLUSTERS)
    assert c_b and c_b.mde_from_independent
    assert c_b.mde == pytest.approx(detectable_difference(0.11697953037312035, 5))
    assert a_c and not a_c.mde_from_independent
    assert a_c.mde == pytest.approx(detectable_difference(0.09354143466934853, 5))


def test_the_error_of_a_mean_with_four_interleaved_clusters() -> None:
    values = [float(value) for value in range(20)]
    assert clustered_se(values, [index % 4 for index in range(20)]) == pytest.approx(
        0.6454972243679028, rel=1e-14
    )


@pytest.mark.parametrize(
    ("groups", "factor"), [(10, 3.146), (3, 5.363), (4, 4.161), (20, 2.954), (500, 2.807)]
)
def test_the_factor_of_the_mde_depends_on_the_clusters(groups: int, factor: float) -> None:
    assert detectable_difference(1.0, groups) == pytest.approx(factor, abs=5e-4)


@pytest.mark.parametrize(
    ("freedom", "value"),
    [(1, 12.706204736432095), (4, 2.7764451051977987), (9, 2.2621571627409915)],
)
def test_t_975(freedom: int, value: float) -> None:
    assert quantile(freedom, 0.975) == pytest.approx(value, rel=1e-9)


def test_one_cluster_has_no_error() -> None:
    found = clustered_mean([1.0, 0.0, 1.0], ["a", "a", "a"])
    assert found and found.se is found.low is found.high is found.mde is None
    assert clustered_mean([], []) is clustered_se([], []) is independent_se([1.0]) is None


def test_equal_cells_can_show_nothing() -> None:
    found = clustered_mean([0.0] * 6, list("aabbcc"))
    assert found and found.se == 0.0 and found.low is found.mde is None


def test_equal_values_have_an_error_of_exactly_0() -> None:
    assert clustered_se([0.1] * 7, list("aabbccc")) == 0.0


@given(ROWS)
def test_it_is_the_error_of_a_regression_on_a_constant(rows: list[tuple[float, int]]) -> None:
    """CR1 as `OLS(d ~ 1)` with clustered covariance has it, by matrices."""
    values, clusters = [value for value, _ in rows], [cluster for _, cluster in rows]
    assume(len(set(clusters)) > 1 and len(set(values)) > 1)
    y, x = np.array(values), np.ones((len(values), 1))
    bread = np.linalg.inv(x.T @ x)
    residuals = y - x @ (bread @ x.T @ y)
    meat = np.zeros((1, 1))
    for cluster in set(clusters):
        own = np.array(clusters) == cluster
        score = x[own].T @ residuals[own]
        meat += np.outer(score, score)

    groups, count = len(set(clusters)), len(values)
    # (N - 1)/(N - K) is 1 for one regressor.
    correction = groups / (groups - 1) * (count - 1) / (count - 1)
    expected = sqrt((correction * bread @ meat @ bread).item())
    assert clustered_se(values, clusters) == pytest.approx(expected, abs=1e-9)


@given(ROWS, st.randoms())
def test_the_order_and_the_names_of_clusters_do_not_matter(
    rows: list[tuple[float, int]], random: np.random.Generator
) -> None:
    before = clustered_se([value for value, _ in rows], [cluster for _, cluster in rows])
    random.shuffle(rows)
    after = clustered_se([value for value, _ in rows], [f"conv-{c}" for _, c in rows])
    assert after == (None if before is None else pytest.approx(before, abs=1e-12))


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=2, max_size=30))
def test_clusters_of_one_are_independent_values(values: list[float]) -> None:
    assert clustered_se(values, range(len(values))) == pytest.approx(
        independent_se(values), abs=1e-12
    )


def test_weights_restore_the_share_of_each_category() -> None:
    # Two clusters; weights 3 and 1. Mean (3·1 + 1·0 + 3·0 + 1·1) / 8 = 1/2. Residuals w(x - 1/2):
    # 3/2 - 1/2 = 1 and -3/2 + 1/2 = -1, so SE = sqrt(2 · (1 + 1)) / 8 = 1/4.
    result = clustered_mean([1.0, 0.0, 0.0, 1.0], ["a", "a", "b", "b"], [3.0, 1.0, 3.0, 1.0])
    assert result is not None
    assert (result.mean, result.se) == pytest.approx((0.5, 0.25))
    # Each value a cluster of its own: sqrt(4/3 · (9 + 1 + 9 + 1) / 4) / 8.
    assert result.independent_se == pytest.approx(sqrt(4 / 3 * 5) / 8)


@given(ROWS, st.floats(0.1, 50.0))
def test_equal_weights_change_nothing(rows: list[tuple[float, int]], weight: float) -> None:
    values, clusters = [value for value, _ in rows], [cluster for _, cluster in rows]
    assert clustered_mean(values, clusters, [weight] * len(rows)) == clustered_mean(
        values, clusters
    )
