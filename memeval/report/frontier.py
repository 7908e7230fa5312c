"""The frontier of a plot of accuracy against what it costs: the cells that no other one beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memeval.report.differences import system_of
from memeval.results import RunSummary
from memeval.statistics.frontier import Point, frontier_area, pareto_frontier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE = "#333333"


def is_fair(summary: RunSummary) -> bool:
    """Whether a cell says what can be had for its price.

    The oracle does not: it is handed the evidence. Nor does a cell that is not valid.
    """
    return summary.valid and system_of(summary) != "oracle"


def draw_frontier(axes: Axes, points: Sequence[Point], unit: str = "tokens") -> str:
    """Draws the best accuracy that each budget buys, as steps behind the points.

    Returns the area below it, in words; empty where there is no range of budgets.
    """
    kept = [points[index] for index in pareto_frontier(points)]
    if len(kept) < 2:
        return ""

    dearest = max(cost for cost, _ in points)
    # The line goes on to the dearest cell: more money buys nothing better there.
    xs = [*(cost for cost, _ in kept), dearest]
    ys = [*(accuracy for _, accuracy in kept), kept[-1][1]]
    axes.plot(
        xs, ys, drawstyle="steps-post", color=LINE, linewidth=1.1, linestyle=(0, (5, 2)), zorder=1
    )
    words = area_words(points, unit)
    return f"dashed: {words}" if words else ""


def area_words(points: Sequence[Point], unit: str = "tokens") -> str:
    """`frontier, 48.1 % on average over 85 to 16,300 tokens`, budgets on a logarithmic scale.

    Empty where there is no range of budgets.
    """
    costs = [cost for cost, _ in points if cost > 0]
    if not costs or min(costs) == max(costs):
        return ""

    low, high = min(costs), max(costs)
    area = frontier_area(points, low, high)
    return f"frontier, {area:.1f} % on average over {_budget(low)} to {_budget(high)} {unit}"


def _budget(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"
