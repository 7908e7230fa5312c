from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.statistics.frontier import frontier_area, pareto_frontier

POINTS = [(0.2, 51.0), (26.9, 58.6), (108.3, 74.9), (177.2, 69.9)]


def test_area_of_the_example_of_lafs() -> None:
    assert frontier_area(POINTS, 1, 200) == pytest.approx(55.76484693638005, rel=1e-14)
    assert frontier_area(POINTS[::-1], 1, 200) == pytest.approx(55.76484693638005, rel=1e-14)


def test_accuracy_below_the_cheapest_cell_is_zero() -> None:
    assert frontier_area([(10, 80.0)], 1, 100) == pytest.approx(40.0)
    assert frontier_area([], 1, 100) == frontier_area([(500, 90.0)], 1, 100) == 0


def test_frontier_contains_only_undominated_points() -> None:
    assert pareto_frontier(POINTS[::-1]) == POINTS[:3]
    assert pareto_frontier([(1, 0.5), (1, 0.7), (2, 0.7), (1, 0.7)]) == [(1, 0.7)] * 2
    assert pareto_frontier([]) == []


@pytest.mark.parametrize(("low", "high"), [(0, 1), (2, 1), (-1, 3)])
def test_invalid_range_of_budgets_is_refused(low: float, high: float) -> None:
    with pytest.raises(ValueError, match="range of budgets"):
        frontier_area(POINTS, low, high)


@given(st.lists(st.tuples(st.integers(1, 9).map(float), st.integers(0, 9).map(float)), max_size=12))
def test_a_point_stays_iff_no_other_dominates_it(points: list[tuple[float, float]]) -> None:
    kept = pareto_frontier(points)
    for cost, accuracy in points:
        dominated = any(
            (other, gained) != (cost, accuracy) and other <= cost and gained >= accuracy
            for other, gained in points
        )
        stays = 0 if dominated else points.count((cost, accuracy))
        assert kept.count((cost, accuracy)) == stays

    if points:
        area = frontier_area(points, 0.5, 20)
        assert area == pytest.approx(frontier_area(kept, 0.5, 20))
        assert area <= max(accuracy for _, accuracy in points) + 1e-9
