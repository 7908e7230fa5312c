"""Accuracy against what it costs, as the page draws it: by the same rules as the plots in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memeval.page.axis import LOG_FROM, Axis, Tick
from memeval.page.data import CellData
from memeval.report.figures import dollars, milliseconds, percent, short_count
from memeval.report.frontier import area_words
from memeval.statistics.frontier import pareto_frontier


@dataclass(frozen=True)
class Point:
    """A cell in a plot of accuracy against something that it costs."""

    number: int
    """Its place in the table of the cells, from 1."""
    label: str
    x: float
    y: float
    on_frontier: bool
    """Whether no other cell is better in one and at least as good in the other."""
    x_text: str
    y_text: str


@dataclass(frozen=True)
class Frontier:
    """Accuracy against something that it costs."""

    title: str
    points: tuple[Point, ...]
    steps: tuple[tuple[float, float, float, float], ...]
    """Lines between the points of the frontier: x1, y1, x2, y2."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    area: str
    """The area below the frontier, in words; empty where there is none."""


def frontiers(cells: Sequence[CellData]) -> tuple[Frontier, ...]:
    """Accuracy against tokens of context, dollars and latency, where the cells differ in them."""
    axes: list[tuple[str, str, str, Callable[[float | None], str]]] = [
        ("Context, tokens per question", "context_tokens", "tokens", short_count),
        ("Cost without the cache, US dollars", "cost_usd_uncached/total", "dollars", dollars),
        ("Latency of an answer, median", "latency_ms/answer/p50", "ms", milliseconds),
    ]
    made = [
        frontier(title, metric, cells, unit=unit, as_text=as_text)
        for title, metric, unit, as_text in axes
    ]
    return tuple(plot for plot in made if plot is not None)


def frontier(
    title: str,
    metric: str,
    cells: Sequence[CellData],
    *,
    unit: str,
    as_text: Callable[[float | None], str],
) -> Frontier | None:
    """Accuracy against one metric; None where fewer than two values of it are known."""
    rows = []
    for number, cell in enumerate(cells, start=1):
        cost, accuracy = cell.figures.get(metric), cell.accuracy.value
        if cost is not None and accuracy is not None:
            rows.append((number, cell, cost, accuracy))

    costs = [cost for _, _, cost, _ in rows]
    if len(set(costs)) < 2:
        return None

    across = price_axis(costs)
    up = accuracy_axis([accuracy for _, _, _, accuracy in rows])
    fair = [(cost, 100 * accuracy) for _, cell, cost, accuracy in rows if cell.is_fair]
    # By value: the positions are those among the fair cells, not among the rows.
    best = {fair[index] for index in pareto_frontier(fair)}
    points = []
    for number, cell, cost, accuracy in rows:
        point = Point(
            number=number,
            label=cell.label,
            x=across.at(cost),
            y=round(100 - up.at(accuracy), 2),
            on_frontier=cell.is_fair and (cost, 100 * accuracy) in best,
            x_text=as_text(cost),
            y_text=percent(accuracy),
        )
        points.append(point)

    return Frontier(
        title=title,
        points=tuple(points),
        steps=steps(points),
        x_ticks=tuple(
            Tick(across.at(value), as_text(value) if value else "0")
            for value in price_ticks(across, costs)
        ),
        y_ticks=tuple(
            Tick(round(100 - up.at(value), 2), percent(value, 0)) for value in up.ticks()
        ),
        area=area_words(fair, unit),
    )


def price_axis(costs: Sequence[float]) -> Axis:
    """The axis of prices: logarithmic where they span more than a factor of 20, 0 included."""
    positive = [cost for cost in costs if cost > 0]
    if not positive or max(positive) <= LOG_FROM * min(positive):
        return Axis(0.0, max(costs))

    # Where a cell costs nothing, it is at the beginning, and the cheapest of the others beside it.
    low = min(positive) / 3 if min(costs) == 0 else min(positive)
    return Axis(low, max(positive), logarithmic=True)


def price_ticks(axis: Axis, costs: Sequence[float]) -> list[float]:
    """The prices to mark, 0 included where a cell costs nothing."""
    ticks = axis.ticks()
    return [0.0, *ticks] if axis.logarithmic and min(costs) == 0 else ticks


def accuracy_axis(accuracies: Sequence[float]) -> Axis:
    """The axis upwards, with some room around the points."""
    low, high = min(accuracies), max(accuracies)
    room = max(0.02, 0.15 * (high - low))
    return Axis(max(0.0, low - room), min(1.0, high + room))


def steps(points: Sequence[Point]) -> tuple[tuple[float, float, float, float], ...]:
    """The line of the frontier, as steps: the best accuracy that can be had up to a cost."""
    places = sorted({(point.x, point.y) for point in points if point.on_frontier})
    # Between two points nothing better can be had than the left one: no slope, steps.
    lines = []
    for (x, y), (next_x, next_y) in pairwise(places):
        lines += [(x, y, next_x, y), (next_x, y, next_x, next_y)]

    if places:
        lines.append((*places[-1], 100.0, places[-1][1]))

    return tuple(lines)
