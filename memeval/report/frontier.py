"""The frontier of a plot of accuracy against what it costs: the cells that no other one beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memeval.statistics.frontier import Point, frontier_area, pareto_frontier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE = "#333333"


def draw_frontier(axes: Axes, points: Sequence[Point]) -> str:
    """Draws the best accuracy that each budget buys, as steps behind the points.

    Returns what the area below it comes to, in words; empty where there is no range of budgets.
    """
    kept = [points[index] for index in pareto_frontier(points)]
    if len(kept) < 2:
        return ""

    dearest = max(cost for cost, _ in points)
    xs = [*(cost for cost, _ in kept), dearest]
    ys = [*(accuracy for _, accuracy in kept), kept[-1][1]]
    axes.plot(
        xs, ys, drawstyle="steps-post", color=LINE, linewidth=1.1, linestyle=(0, (5, 2)), zorder=1
    )
    return area_words(points)


def area_words(points: Sequence[Point]) -> str:
    """`frontier over 85 to 16,300: 48.1 %`: the mean over all budgets, on a logarithmic scale."""
    costs = [cost for cost, _ in points if cost > 0]
    if not costs or min(costs) == max(costs):
        return ""

    low, high = min(costs), max(costs)
    area = frontier_area(points, low, high)
    return f"dashed: frontier, {area:.1f} % on average over {low:,.0f} to {high:,.0f} tokens"
