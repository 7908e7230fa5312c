"""Accuracy against cost, tokens of context, dollars or time: a point per cell, and the frontier of
the cells that no other cell beats.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from memeval.metrics.formats import percent, significant
from memeval.metrics.metric import PRICE, Metric
from memeval.metrics.registry import metrics_at
from memeval.report.differences import labels, system_of
from memeval.report.plots.model import (
    Axis,
    Mark,
    MarkStyle,
    Panel,
    Plot,
    accuracy_axis,
    mark_of,
    name_datasets,
    styles_of,
    title_of_cells,
)
from memeval.results import RunSummary
from memeval.statistics.frontier import Point, frontier_area, pareto_frontier

LEGEND = 1.5
"""Width of the legend next to the plot, in inches."""
LOG_FROM = 20.0
"""If the largest price is more than this many times the smallest, the axis is logarithmic."""


def prices() -> dict[str, Metric]:
    """Metrics that an accuracy can be plotted against: `context`, `cost` and `latency`."""
    return {next(iter(metric.aliases)): metric for metric in metrics_at(PRICE)}


def sweep_plot(summaries: Sequence[RunSummary], price: str = "context") -> Plot:
    """Accuracy against a price: a point per cell, its name next to it if there is room.

    Cells that lack either figure are left out.
    """
    metric = prices()[price]
    cells = [summary for summary in summaries if has_position(summary, metric)]
    # Of all cells: a system looks the same on all plots of a sweep.
    styles = styles_of(map(system_of, summaries))
    panel = price_panel(cells, labels(cells), styles, metric)

    title = title_of_cells(f"accuracy against {price}, {name_datasets(cells)}", cells)
    if panel.steps and panel.area:
        title += f"\ndashed: {panel.area}"

    plot = Plot(title=title, panels=[[panel]], width=7.2, height=4.8)
    legend = {system_of(cell): styles[system_of(cell)] for cell in cells}
    if len(legend) > 1:
        plot = replace(plot, width=7.2 + LEGEND, legend=legend)

    return plot


def price_panels(cells: Sequence[RunSummary], names: Sequence[str]) -> list[Panel]:
    """Accuracy against each price in which the cells differ."""
    styles = styles_of(map(system_of, cells))
    differing = [metric for metric in prices().values() if len(prices_paid(cells, metric)) > 1]
    return [price_panel(cells, names, styles, metric) for metric in differing]


def price_panel(
    cells: Sequence[RunSummary],
    names: Sequence[str],
    styles: Mapping[str, MarkStyle],
    price: Metric,
) -> Panel:
    """The accuracies of those cells that have both figures, against a price."""
    marks, fair = [], []
    for cell, name in zip(cells, names, strict=True):
        if not has_position(cell, price):
            continue

        cost = price.of_summary(cell) or 0.0
        text = f"{percent(cell.metrics['accuracy'])} %, {price.unit.short(cost)}"
        marks.append(mark_of(cell, cost, styles[system_of(cell)], name, text))
        fair.append(is_fair(cell))

    return frontier_panel(marks, fair, price, title=price.titles[PRICE])


def frontier_panel(marks: Sequence[Mark], fair: Sequence[bool], price: Metric, title: str) -> Panel:
    """Marks along an axis of prices, and the frontier of those that are `fair`."""
    points = [(mark.x, mark.y) for mark, counts in zip(marks, fair, strict=True) if counts]
    best = pareto_frontier(points)
    costs, with_best = [], []
    for mark, counts in zip(marks, fair, strict=True):
        costs.append(mark.x)
        with_best.append(replace(mark, is_best=counts and (mark.x, mark.y) in best))

    return Panel(
        across=replace(price_axis(costs, price), title=title),
        up=accuracy_axis(with_best),
        marks=with_best,
        steps=frontier_steps(points),
        area=area_words(points, price.unit.word or price.unit.name),
        has_names=True,
    )


def price_axis(costs: Sequence[float], price: Metric) -> Axis:
    """The axis of prices: logarithmic if they span more than a factor of 20, 0 included."""
    positive = [cost for cost in costs if cost > 0]
    axis = Axis(0.0, max(costs, default=0.0) or 1.0)
    ticks: dict[float, str] = {0.0: "0"}
    if positive and max(positive) > LOG_FROM * min(positive):
        axis = replace(axis, low=min(positive), is_logarithmic=True)
        # A cell that costs nothing is at the beginning, and the cheapest of the others next to it.
        if min(costs) == 0:
            axis = replace(axis, low=min(positive) / 3)
        else:
            ticks = {}

    for value in filter(None, axis.round_values()):
        ticks[value] = price.unit.full(value)

    return replace(axis, ticks=ticks)


def frontier_steps(points: Sequence[Point]) -> list[Point]:
    """Corners of the best accuracy that each budget buys; none if one cell is the best of all."""
    kept = pareto_frontier(points)
    if len(kept) < 2:
        return []

    # The line continues to the most expensive cell: a higher price brings no higher accuracy there.
    most_expensive, _ = max(points)
    return [*kept, (most_expensive, kept[-1][1])]


def area_words(points: Sequence[Point], unit: str = "tokens") -> str:
    """`frontier, 48.1 % on average over 85 to 16,300 tokens`, budgets on a logarithmic scale.

    Empty if there is no range of budgets.
    """
    costs = [cost for cost, _ in points if cost > 0]
    if not costs or min(costs) == max(costs):
        return ""

    low, high = min(costs), max(costs)
    area = frontier_area(points, low, high)
    return f"frontier, {area:.1f} % on average over {_budget(low)} to {_budget(high)} {unit}"


def _budget(value: float) -> str:
    if value < 10:
        return significant(value)

    return f"{value:,.0f}"


def is_fair(summary: RunSummary) -> bool:
    """Whether a cell shows the accuracy that its price can buy. The oracle does not, because it is
    given the evidence, and neither does an invalid cell.
    """
    return summary.valid and system_of(summary) != "oracle"


def has_position(summary: RunSummary, price: Metric) -> bool:
    """Whether the run has both figures that the plot needs."""
    return price.of_summary(summary) is not None and summary.metrics.get("accuracy") is not None


def prices_paid(cells: Sequence[RunSummary], price: Metric) -> set[float | None]:
    """The different prices of the runs that have both figures."""
    return {price.of_summary(cell) for cell in cells if has_position(cell, price)}
