from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import stdtrit
from vectors import CLUSTERS, A, B, C, minus

from memeval.statistics.clusters import cluster_sums
from memeval.statistics.differences import (
    clustered_difference,
    detectable_difference,
    more_clusters,
)


@pytest.mark.parametrize(
    ("differences", "mean", "sums", "se", "independent", "p"),
    [
        (minus(A, B), 0.25, [1, 1, 1, 1, 1], 0.0, 0.09933992677987827, 0.0625),
        (minus(C, B), 0.20, [1, 0, 0, 1, 2], 0.09354143466934854, 0.11697953037312035, 0.25),
        (minus(A, C), 0.05, [0, 1, 1, 0, -1], 0.09354143466934853, 0.08810878443570108, 1.0),
    ],
)
def test_worked_example_has_documented_figures_and_no_interval(
    differences: list[float],
    mean: float,
    sums: list[float],
    se: float,
    independent: float,
    p: float,
) -> None:
    found = clustered_difference(differences, CLUSTERS, most=1.0)
    assert found is not None
    assert (found.count, found.groups, found.p) == (20, 5, p)
    assert found.mean == pytest.approx(mean, abs=1e-15)
    assert list(cluster_sums(differences, CLUSTERS).values()) == sums
    assert found.se == pytest.approx(se, rel=1e-14)
    assert found.independent_se == pytest.approx(independent, rel=1e-14)
    # With five conversations no difference can be shown, however much they agree.
    assert found.has_too_few_clusters and found.low is found.high is found.mde is None


def test_t_intervals_of_the_worked_example_match_their_definition() -> None:
    """For reference: SE and t(4) as in the table of definitions."""
    for differences, low, high in [
        (minus(C, B), -0.059712658420891906, 0.45971265842089193),
        (minus(A, C), -0.20971265842089193, 0.3097126584208919),
    ]:
        found = clustered_difference(differences, CLUSTERS)
        assert found and found.se
        half = found.se * float(stdtrit(4, 0.975))
        assert (found.mean - half, found.mean + half) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("groups", "factor"),
    [(6, 4.40), (7, 3.50), (8, 3.36), (9, 3.28), (10, 3.146), (20, 2.954), (500, 2.807)],
)
def test_mde_factor_depends_on_the_number_of_clusters(groups: int, factor: float) -> None:
    assert detectable_difference(1.0, groups) == pytest.approx(factor, abs=5e-4)


def test_an_mde_is_never_above_100_points_and_none_below_six_clusters() -> None:
    assert detectable_difference(0.9, 10, most=1.0) == 1.0
    assert detectable_difference(0.9, 10) == pytest.approx(0.9 * 3.146, abs=1e-3)
    assert [detectable_difference(0.01, groups) for groups in (1, 2, 5)] == [None, None, None]


def test_number_of_clusters_needed_for_an_mde() -> None:
    assert more_clusters(0.1, 3, most=1.0) == (
        10,
        pytest.approx(detectable_difference(0.1 * (3 / 10) ** 0.5, 10)),
    )
    # With ten clusters the MDE would not be below 100 points; with twenty it is.
    wanted = more_clusters(0.65, 3, most=1.0)
    assert wanted is not None and wanted[0] == 20 and wanted[1] < 1
    assert more_clusters(1e9, 3, most=1.0) is None


def test_mde_uses_the_larger_of_both_errors() -> None:
    agree = clustered_difference([0.0, 0.0, 1.0] * 6, [index // 3 for index in range(18)], most=1.0)
    assert agree and agree.se == 0.0 and agree.mde_from_independent
    assert agree.mde == pytest.approx(4.40 * (agree.independent_se or 0))
    part = clustered_difference([1.0] * 6 + [0.0] * 12, [index // 3 for index in range(18)])
    assert part and part.se and not part.mde_from_independent
    assert part.mde == pytest.approx(4.40 * part.se)


def test_one_difference_on_every_question_shows_no_spread_and_no_mde() -> None:
    # The mean of sixty equal differences is not quite the difference.
    found = clustered_difference([2 / 3 - 1 / 2] * 60, [number % 6 for number in range(60)])
    assert found and found.mean == pytest.approx(1 / 6) and found.p == 2 / 2**6
    assert found.independent_se == 0 and found.mde is found.largest_error is None


def test_cells_that_never_differ_have_a_zero_interval_and_no_mde() -> None:
    found = clustered_difference([0.0] * 12, [index // 2 for index in range(12)], most=1.0)
    assert found and (found.mean, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    assert found.mde is found.largest_error is None


def test_thirds_that_cancel_in_every_cluster_are_no_difference() -> None:
    """Right in 1, 3, 2, 0 and in 2, 2, 1, 1 of three repeats: equal in sum, up to rounding."""
    pairs = zip((1, 3, 2, 0), (2, 2, 1, 1), strict=True)
    differences = [one / 3 - other / 3 for one, other in pairs] * 10
    found = clustered_difference(differences, [index // 4 for index in range(40)], most=1.0)
    assert sum(differences) != 0
    assert found and (found.mean, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    assert found.se == 0 and found.independent_se


def test_an_end_of_0_is_exactly_0() -> None:
    pairs = zip((3, 3, 2, 2, 3, 0), (3, 0, 0, 1, 2, 0), strict=True)
    found = clustered_difference([one / 3 - other / 3 for one, other in pairs], range(6))
    assert found and found.low == 0.0 and found.p == 0.125


def test_single_cluster_has_no_p_value_and_no_interval() -> None:
    found = clustered_difference([1.0, 0.0, 1.0], ["a", "a", "a"])
    assert found and found.se is found.low is found.high is found.p is found.mde is None
    assert clustered_difference([], []) is None


def test_weight_of_2_equals_counting_a_pair_twice() -> None:
    """Doubling a pair gives the same interval as giving it weight 2, and the others weight 1."""
    rng = np.random.default_rng(5)
    values = rng.choice([-1.0, 0.0, 1.0], 40).tolist()
    clusters = [index % 8 for index in range(40)]
    weights = [1.0 + index % 2 for index in range(40)]
    weighted = clustered_difference(values, clusters, weights)
    heavy = [index for index in range(40) if index % 2]
    doubled = clustered_difference(
        values + [values[index] for index in heavy], clusters + [clusters[index] for index in heavy]
    )
    assert weighted and doubled
    for name in ("mean", "low", "high", "p"):
        assert getattr(weighted, name) == pytest.approx(getattr(doubled, name))


PAIRS = st.lists(
    st.tuples(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), st.integers(0, 9)),
    min_size=2,
    max_size=60,
)


@given(PAIRS)
def test_interval_p_and_mde_never_contradict_each_other(rows: list[tuple[float, int]]) -> None:
    values, clusters = [value for value, _ in rows], [cluster for _, cluster in rows]
    found = clustered_difference(values, clusters, most=1.0)
    assert found is not None
    assert (found.low is None) == (found.high is None) == found.has_too_few_clusters
    if found.low is None or found.high is None:
        assert found.mde is None and (found.p is None or found.p > 0.05)
    else:
        assert found.p is not None
        assert (found.low <= 0 <= found.high) == (found.p > 0.05)
        assert found.low - 1e-12 <= found.mean <= found.high + 1e-12

    assert found.mde is None or 0 < found.mde <= 1
    assume(len(set(clusters)) > 1)
    assert (found.largest_error is None) == (set(values) == {values[0]})
