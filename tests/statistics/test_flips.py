from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from vectors import CLUSTERS, A, B, C, minus

from memeval.statistics.clusters import cluster_sums
from memeval.statistics.flips import DRAWS, flip_and_max_t_ps, flip_p, flip_ps, max_t_ps

SUMS = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=7)


def sums(first: list[float], second: list[float]) -> list[float]:
    return list(cluster_sums(minus(first, second), CLUSTERS).values())


def test_the_worked_example() -> None:
    pairs = [sums(A, B), sums(C, B), sums(A, C)]
    assert flip_ps(pairs) == [0.0625, 0.25, 1.0]
    assert max_t_ps(pairs) == [0.0625, 0.25, 1.0]


@pytest.mark.parametrize("groups", [3, 5, 10, 16])
def test_the_smallest_p(groups: int) -> None:
    assert flip_p([1.0] * groups) == 2 / 2**groups


def test_forty_five_pairs_of_ten_conversations_can_show_something() -> None:
    strong = [[3.0 + pair] * 10 for pair in range(45)]
    assert max(max_t_ps(strong)) == pytest.approx(0.001953125)


@given(SUMS)
def test_every_flip_by_hand(values: list[float]) -> None:
    observed = abs(sum(values))
    flips = list(product((1, -1), repeat=len(values)))
    at_least = sum(
        abs(sum(sign * value for sign, value in zip(signs, values, strict=True))) >= observed
        for signs in flips
    )
    assert flip_p(values) == at_least / len(flips)


def test_it_is_scipys_permutation_test() -> None:
    values = [0.4, 1.1, -0.3, 2.0, 0.9, -0.1, 0.8]
    found = stats.permutation_test(
        (np.array(values),),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert flip_p(values) == pytest.approx(found.pvalue)


def test_a_tie_is_a_tie_despite_rounding() -> None:
    """Averages of three repeats: ±1/3 and ±2/3 do not add up exactly."""
    assert flip_p([1 / 3, 1 / 3, 1 / 3, -1 / 3 - 2 / 3, 2 / 3]) == flip_p([1, 1, 1, -3, 2])


def test_above_sixteen_clusters_flips_are_drawn_and_the_data_count_as_one_draw() -> None:
    values = [1.0] * 40
    assert flip_p(values) == 1 / (DRAWS + 1)
    mixed = [float(index % 3 - 1) + 0.1 for index in range(60)]
    assert flip_p(mixed) == flip_p(mixed)
    z = abs(sum(mixed)) / np.sqrt(np.sum(np.square(mixed)))
    assert flip_p(mixed) == pytest.approx(2 * stats.norm.sf(z), abs=0.03)


def test_no_difference_has_a_p_of_1() -> None:
    assert flip_ps([[0.0, 0.0], [1.0, -1.0]]) == [1.0, 1.0]
    assert flip_and_max_t_ps([]) == ([], [])
    assert flip_p([1.0]) == 1.0


@given(st.lists(st.lists(st.integers(-3, 3).map(float), min_size=5, max_size=5), max_size=6))
def test_step_down_max_t_by_hand(comparisons: list[list[float]]) -> None:
    own, adjusted = flip_and_max_t_ps(comparisons)
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
