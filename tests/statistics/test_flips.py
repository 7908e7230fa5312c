from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import ndtr, stdtrit
from vectors import CLUSTERS, A, B, C, minus

from memeval.statistics.clusters import cluster_sums
from memeval.statistics.flips import DRAWS, FlipTest, flip_test, max_t_ps

SUMS = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=7)


def flip_p(values: Sequence[float]) -> float:
    """p for clusters of equal size."""
    return flip_test(values, [1.0] * len(values)).p


def sums(first: list[float], second: list[float]) -> list[float]:
    return list(cluster_sums(minus(first, second), CLUSTERS).values())


def test_worked_example_has_documented_p_values() -> None:
    pairs = [sums(A, B), sums(C, B), sums(A, C)]
    assert list(map(flip_p, pairs)) == [0.0625, 0.25, 1.0]
    assert max_t_ps(pairs) == [0.0625, 0.25, 1.0]


@pytest.mark.parametrize("groups", [3, 5, 10, 16])
def test_smallest_p_is_2_over_the_number_of_flips(groups: int) -> None:
    assert flip_p([1.0] * groups) == 2 / 2**groups


def test_adjusted_p_of_45_pairs_over_ten_clusters_can_be_significant() -> None:
    strong = [[3.0 + pair] * 10 for pair in range(45)]
    assert max(max_t_ps(strong)) == pytest.approx(0.001953125)


@given(SUMS)
def test_p_equals_a_count_over_all_flips(values: list[float]) -> None:
    observed = abs(sum(values))
    flips = list(product((1, -1), repeat=len(values)))
    at_least = sum(
        abs(sum(sign * value for sign, value in zip(signs, values, strict=True))) >= observed
        for signs in flips
    )
    assert flip_p(values) == at_least / len(flips)


def test_p_equals_scipys_permutation_test() -> None:
    from scipy import stats

    values = [0.4, 1.1, -0.3, 2.0, 0.9, -0.1, 0.8]
    found = stats.permutation_test(
        (np.array(values),),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert flip_p(values) == pytest.approx(found.pvalue)


def test_ties_are_counted_despite_rounding() -> None:
    """Averages of three repeats: ±1/3 and ±2/3 do not add up exactly."""
    assert flip_p([1 / 3, 1 / 3, 1 / 3, -1 / 3 - 2 / 3, 2 / 3]) == flip_p([1, 1, 1, -3, 2])


def test_above_16_clusters_flips_are_sampled_and_observed_counts_once() -> None:
    values = [1.0] * 40
    assert flip_p(values) == 1 / (DRAWS + 1)
    mixed = [float(index % 3 - 1) + 0.1 for index in range(60)]
    assert flip_p(mixed) == flip_p(mixed)
    z = abs(sum(mixed)) / np.sqrt(np.sum(np.square(mixed)))
    assert flip_p(mixed) == pytest.approx(2 * ndtr(-z), abs=0.03)


def test_zero_difference_has_a_p_of_1() -> None:
    assert flip_p([0.0, 0.0]) == flip_p([1.0, -1.0]) == 1.0
    assert max_t_ps([]) == []
    assert flip_p([1.0]) == 1.0


@given(st.lists(st.lists(st.integers(-3, 3).map(float), min_size=5, max_size=5), max_size=6))
def test_step_down_max_t_equals_a_count_over_all_flips(comparisons: list[list[float]]) -> None:
    own, adjusted = list(map(flip_p, comparisons)), max_t_ps(comparisons)
    assert all(a >= o - 1e-12 for a, o in zip(adjusted, own, strict=True))
    order = sorted(range(len(comparisons)), key=lambda index: -abs(sum(comparisons[index])))
    flips = list(product((1, -1), repeat=5))
    last = 0.0
    for place, index in enumerate(order):
        rest = [comparisons[other] for other in order[place:]]
        at_least = 0
        for signs in flips:
            largest = max(abs(float(np.dot(signs, values))) for values in rest)
            at_least += largest >= abs(sum(comparisons[index]))

        last = max(last, at_least / len(flips))
        assert adjusted[index] == pytest.approx(last)


@given(SUMS)
def test_one_comparison_needs_no_adjustment(values: list[float]) -> None:
    assert max_t_ps([values]) == [flip_p(values)]
    assert flip_p([-value for value in values]) == flip_p(values)


@pytest.mark.parametrize(
    ("values", "sizes", "p", "low", "high"),
    [
        (
            [3, -1, 4, 1, 5, -2, 6, 0, 2, 1],
            [20, 15, 30, 12, 25, 18, 22, 10, 16, 14],
            0.06640625,
            0.0,
            0.18181818181818182,
        ),
        ([5, 4, 6, 3, 2, 7], [10] * 6, 0.03125, 0.2, 0.7),
        ([5, 4, 6, 3, 2], [10] * 5, 0.0625, None, None),
        (
            [40, 1, -1, 2, 0, 1, 1, -2, 1, 0],
            [900, *([100] * 9)],
            0.296875,
            -0.005,
            0.03727272727272727,
        ),
    ],
)
def test_interval_inverts_the_flip_test(
    values: list[float], sizes: list[float], p: float, low: float | None, high: float | None
) -> None:
    assert flip_test(values, sizes) == FlipTest(
        p=p,
        low=None if low is None else pytest.approx(low, rel=1e-14),
        high=None if high is None else pytest.approx(high, rel=1e-14),
    )


CLUSTERED = st.lists(
    st.tuples(st.integers(-6, 6).map(float), st.integers(1, 9).map(float)), min_size=6, max_size=9
)


@given(CLUSTERED, st.floats(-3, 3))
def test_difference_is_inside_interval_iff_flip_test_does_not_reject_it(
    rows: list[tuple[float, float]], difference: float
) -> None:
    values, sizes = [value for value, _ in rows], [size for _, size in rows]
    found = flip_test(values, sizes)
    assert found.low is not None and found.high is not None
    # At the ends of the interval, rounding decides.
    assume(min(abs(difference - found.low), abs(difference - found.high)) > 1e-6)
    moved = [value - difference * size for value, size in rows]
    assert (found.low <= difference <= found.high) == (flip_p(moved) > 0.05)


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.integers(1, 5), st.integers(1, 3)),
        min_size=1,
        max_size=18,
    )
)
def test_zero_is_inside_interval_iff_p_is_above_5_percent(
    rows: list[tuple[int, int, int]],
) -> None:
    """Sums of thirds: rounding would break ties."""
    values = [value / 3 + (value + repeat) / 3 - repeat / 3 for value, _, repeat in rows]
    found = flip_test(values, [float(size) for _, size, _ in rows])
    if found.low is None or found.high is None:
        assert len(rows) <= 5 and found.p > 0.05
    else:
        assert len(rows) >= 6
        assert (found.low <= 0 <= found.high) == (found.p > 0.05)
        total = sum(values) / sum(size for _, size, _ in rows)
        assert found.low - 1e-12 <= total <= found.high + 1e-12


def test_interval_from_sampled_flips_is_close_to_t_interval() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0.3, 1.0, 60)
    found = flip_test(values.tolist(), [1.0] * 60)
    mean = values.mean()
    half = float(stdtrit(59, 0.975)) * values.std(ddof=1) / np.sqrt(60)
    assert (found.low, found.high) == pytest.approx((mean - half, mean + half), abs=0.03)
    assert found == flip_test(values.tolist(), [1.0] * 60)


@given(CLUSTERED)
def test_interval_is_mirrored_if_the_difference_changes_sign(
    rows: list[tuple[float, float]],
) -> None:
    sizes = [size for _, size in rows]
    one = flip_test([value for value, _ in rows], sizes)
    other = flip_test([-value for value, _ in rows], sizes)
    assert one.low is not None and one.high is not None
    assert (other.p, other.low, other.high) == pytest.approx((one.p, -one.high, -one.low))


def test_sampled_flips_of_one_comparison_need_no_adjustment() -> None:
    sums = [float(value % 7) - 2.5 for value in range(20)]
    assert max_t_ps([sums]) == [flip_test(sums, [1.0] * 20).p]
    assert max_t_ps([sums, sums]) == [flip_test(sums, [1.0] * 20).p] * 2


def test_sampled_flips_count_observed_data_once_per_comparison() -> None:
    certain, none = [1.0] * 40, [1.0, -1.0] * 20
    assert max_t_ps([none, certain]) == [1.0, 1 / 10_000]

    small = [float(value % 5) - 1.9 for value in range(40)]
    first, second = max_t_ps([certain, small])
    assert first == 1 / 10_000
    assert second == flip_test(small, [1.0] * 40).p > first


def test_up_to_16_clusters_all_flips_are_counted() -> None:
    assert max_t_ps([[1.0] * 16]) == [2 / 2**16]
    assert max_t_ps([[1.0] * 40]) == [1 / 10_000]


def test_memory_does_not_grow_with_the_number_of_clusters() -> None:
    tracemalloc.start()
    try:
        flip_p([1.0, -1.0] * 2_500)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 1e6 and most < 2e7


def test_signs_are_drawn_once_for_a_number_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty runs of 500 conversations are 190 pairs: drawing took two thirds of their time."""
    values = [float(number % 5 - 2) for number in range(23)]
    first = flip_test(values, [2.0] * 23), max_t_ps([values])
    monkeypatch.delattr(np.random, "default_rng")
    assert (flip_test(values, [2.0] * 23), max_t_ps([values])) == first
