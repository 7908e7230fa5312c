"""Accuracy against what it costs, as the page draws it: by the same rules as the plots in files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from memeval.metrics.formats import percent
from memeval.metrics.metric import PRICE, Metric
from memeval.metrics.registry import metrics_at
from memeval.page.axis import LOG_FROM, Axis, Tick
from memeval.page.data import CellData
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
    made = [frontier(metric, cells) for metric in metrics_at(PRICE)]
    return tuple(plot for plot in made if plot is not None)


def frontier(metric: Metric, cells: Sequence[CellData]) -> Frontier | None:
    """Accuracy against one metric; None where fewer than two values of it are known."""
    as_text = metric.unit.short
    rows = []
    for number, cell in enumerate(cells, start=1):
        cost, accuracy = cell.figures.get(metric.figure or metric.name), cell.accuracy.value
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
        title=metric.titles[PRICE],
        points=tuple(points),
        steps=steps(points),
        x_ticks=tuple(
            Tick(across.at(value), as_text(value) if value else "0")
            for value in price_ticks(across, costs)
        ),
        y_ticks=tuple(
            Tick(round(100 - up.at(value), 2), percent(value, 0)) for value in up.ticks()
        ),
        area=area_words(fair, metric.unit.word or metric.unit.name),
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
