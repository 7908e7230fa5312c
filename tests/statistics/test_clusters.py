from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import stdtrit

from memeval.statistics.clusters import (
    ClusteredMean,
    clustered_mean,
    clustered_se,
    dominating_cluster,
    independent_se,
)

ROWS = st.lists(
    st.tuples(st.sampled_from([-1.0, 0.0, 1 / 3, 1.0]), st.integers(0, 5)), min_size=2, max_size=40
)


def of_counts(right: list[int], asked: list[int]) -> ClusteredMean:
    """The share of right answers in conversations, given the numbers of right answers and of
    questions.
    """
    values, clusters = [], []
    for cluster, (ones, count) in enumerate(zip(right, asked, strict=True)):
        values += [1.0] * ones + [0.0] * (count - ones)
        clusters += [cluster] * count

    found = clustered_mean(values, clusters, is_share=True)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("right", "asked", "low", "high"),
    [
        ([10, 3, 25, 40], [40, 20, 60, 80], 0.18391026048234907, 0.6446150992793244),
        ([1, 1, 1], [31, 31, 31], 0.004021471321735054, 0.2157991771031901),
        ([0, 0, 0], [31, 31, 31], 0.0, 0.1660151759025062),
        ([300, 10, 12, 9, 15], [400, 20, 20, 20, 20], 0.27064975324021545, 0.9472763354248312),
    ],
)
def test_interval_of_a_share_matches_reference_values(
    right: list[int], asked: list[int], low: float, high: float
) -> None:
    found = of_counts(right, asked)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-11, abs=1e-15)
    assert (found.count, found.groups) == (sum(asked), len(asked))


def test_standard_error_of_unequal_conversations() -> None:
    found = of_counts([10, 3, 25, 40], [40, 20, 60, 80])
    assert found.mean == pytest.approx(0.39)
    assert found.se == pytest.approx(0.07027158200933885, rel=1e-12)


def test_no_error_is_below_that_of_independent_questions() -> None:
    """3 of 93, one per conversation: no spread between conversations, but that proves nothing."""
    assert of_counts([1, 1, 1], [31, 31, 31]).se == pytest.approx(sqrt(3 / 93 * 90 / 93 / 93))
    assert of_counts([0, 0, 0], [31, 31, 31]).se is None


def test_all_right_mirrors_all_wrong() -> None:
    wrong, right = of_counts([0, 0, 0], [31, 20, 9]), of_counts([31, 20, 9], [31, 20, 9])
    assert (right.low, right.high) == pytest.approx((1 - wrong.high, 1.0))


def bell_mccaffrey(asked: list[int]) -> float:
    """Degrees of freedom computed from the full matrix."""
    sizes = np.array(asked, dtype=float)
    total = sizes.sum()
    scale = np.diag((1 - sizes / total) ** -0.5)
    matrix = scale @ (np.diag(sizes) - np.outer(sizes, sizes) / total) @ scale
    return float(np.trace(matrix) ** 2 / (matrix**2).sum())


@given(st.lists(st.integers(1, 40), min_size=2, max_size=12), st.randoms())
def test_interval_is_wilsons_with_the_effective_number_of_questions(
    asked: list[int], random: np.random.Generator
) -> None:
    right = [int(random.random() * (count + 1)) for count in asked]
    found = of_counts(right, asked)
    total, share = sum(asked), sum(right) / sum(asked)
    residuals = [ones - count * share for ones, count in zip(right, asked, strict=True)]
    parts = [r**2 / (1 - count / total) for r, count in zip(residuals, asked, strict=True)]
    error = max(sum(parts) / total**2, share * (1 - share) / total)
    effective = share * (1 - share) / error if 0 < share < 1 else total
    t = float(stdtrit(bell_mccaffrey(asked), 0.975))
    centre = (share + t**2 / 2 / effective) / (1 + t**2 / effective)
    inner = share * (1 - share) / effective + t**2 / 4 / effective**2
    reach = t * sqrt(inner) / (1 + t**2 / effective)
    assert (found.low, found.high) == pytest.approx(
        (max(centre - reach, 0), min(centre + reach, 1)), rel=1e-6, abs=1e-9
    )
    assert found.low is not None and found.high is not None
    assert 0 <= found.low <= found.mean <= found.high <= 1


def test_fractions_take_their_own_variance() -> None:
    """F1 of 0.4 or 0.6 everywhere is more certain than 50 % right."""
    fractions = clustered_mean([0.4, 0.6] * 10, list(range(20)), is_share=True)
    shares = clustered_mean([0.0, 1.0] * 10, list(range(20)), is_share=True)
    assert fractions and shares and fractions.low and fractions.high and shares.low
    assert 0.4 < fractions.low < 0.5 < fractions.high < 0.6
    assert shares.low < 0.3
    equal = clustered_mean([0.5] * 6, list("aabbcc"), is_share=True)
    assert equal and equal.low is not None and equal.high is not None
    assert equal.se is None and equal.low < 0.5 < equal.high


def test_unbounded_mean_has_a_symmetric_t_interval() -> None:
    values, clusters = [1.0, 3.0, 8.0, 2.0, 4.0, 30.0], list("aabbcc")
    found = clustered_mean(values, clusters, is_share=False)
    assert found and found.se and found.low is not None and found.high is not None
    assert found.mean - found.low == pytest.approx(found.high - found.mean)
    residuals = [4 - 2 * 8, 10 - 2 * 8, 34 - 2 * 8]
    variance = sum(r**2 for r in residuals) / (2 / 3) / 36
    spread = float(np.var(values, ddof=1)) / 6
    assert found.se == pytest.approx(sqrt(max(variance, spread)))
    assert found.high - found.mean == pytest.approx(found.se * float(stdtrit(2, 0.975)))
    constant = clustered_mean([7.0] * 6, clusters, is_share=False)
    assert constant and constant.se is constant.low is constant.high is None


def test_values_above_1_are_not_treated_as_shares() -> None:
    found = clustered_mean([0.5, 2.5, 1.5, 0.1], list("aabb"), is_share=True)
    assert found and found.high and found.high > 2.5


def test_conversation_with_half_of_the_questions_is_named() -> None:
    assert dominating_cluster({"a": 10, "b": 30, "c": 20}) == "b"
    assert dominating_cluster({"a": 10, "b": 29, "c": 20}) is None
    assert (
        dominating_cluster({"a": 10, "b": 10})
        is dominating_cluster({"a": 10})
        is dominating_cluster({})
        is None
    )


def test_standard_error_with_four_interleaved_clusters() -> None:
    values = [float(value) for value in range(20)]
    assert clustered_se(values, [index % 4 for index in range(20)]) == pytest.approx(
        0.6454972243679028, rel=1e-14
    )


def test_one_cluster_has_no_error() -> None:
    found = clustered_mean([1.0, 0.0, 1.0], ["a", "a", "a"], is_share=True)
    assert found and found.se is found.low is found.high is None
    assert clustered_mean([], [], is_share=True) is clustered_se([], []) is independent_se([1.0])


def test_equal_values_have_an_error_of_exactly_0() -> None:
    assert clustered_se([0.1] * 7, list("aabbccc")) == 0.0


@given(ROWS)
def test_standard_error_is_that_of_regression_on_a_constant(rows: list[tuple[float, int]]) -> None:
    """CR1 of `OLS(d ~ 1)` with clustered covariance, computed with matrices."""
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
def test_clusters_of_size_one_equal_independent_values(values: list[float]) -> None:
    assert clustered_se(values, range(len(values))) == pytest.approx(
        independent_se(values), abs=1e-12
    )


def test_weights_restore_the_share_of_each_category() -> None:
    # Two clusters; weights 3 and 1. Mean (3·1 + 1·0 + 3·0 + 1·1) / 8 = 1/2. Residuals w(x - 1/2):
    # 3/2 - 1/2 = 1 and -3/2 + 1/2 = -1, so CR1 = sqrt(2 · (1 + 1)) / 8 = 1/4.
    values, clusters, weights = [1.0, 0.0, 0.0, 1.0], ["a", "a", "b", "b"], [3.0, 1.0, 3.0, 1.0]
    assert clustered_se(values, clusters, weights) == pytest.approx(0.25)
    # With one cluster per value: sqrt(4/3 · (9 + 1 + 9 + 1) / 4) / 8.
    assert independent_se(values, weights) == pytest.approx(sqrt(4 / 3 * 5) / 8)

    # CR2: (1 + 1)/(1/2)/64 = 1/16. Independent: 1/4 · Σw²/(Σw)² = 1/4 · 20/64, which is larger.
    found = clustered_mean(values, clusters, weights, is_share=True)
    assert found is not None
    assert (found.mean, found.se) == pytest.approx((0.5, sqrt(5 / 64)))


@given(ROWS, st.floats(0.1, 50.0), st.booleans())
def test_equal_weights_change_nothing(
    rows: list[tuple[float, int]], weight: float, is_share: bool
) -> None:
    values, clusters = [abs(value) for value, _ in rows], [cluster for _, cluster in rows]
    weighted = clustered_mean(values, clusters, [weight] * len(rows), is_share=is_share)
    assert weighted == clustered_mean(values, clusters, is_share=is_share)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=2, max_size=30))
def test_almost_equal_weights_change_almost_nothing(rows: list[tuple[bool, int]]) -> None:
    values, clusters = [float(value) for value, _ in rows], [cluster for _, cluster in rows]
    assume(len(set(clusters)) > 1)
    plain = clustered_mean(values, clusters, is_share=True)
    weighted = clustered_mean(
        values, clusters, [1.0 + 1e-9 * (index % 2) for index in range(len(rows))], is_share=True
    )
    assert plain and weighted
    assert (weighted.low, weighted.high) == pytest.approx((plain.low, plain.high), abs=1e-6)
