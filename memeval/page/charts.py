"""Where the marks of a plot are, as percentages of its width or height.

The plots are SVG without a fixed size, so that words and lines keep theirs on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memeval.page.data import CellData, ComparisonData, ConversationData
from memeval.report.figures import dollars, milliseconds, percent, short_count

EDGE = 4.0
"""Per cent that are left free at either end of an axis."""
LEVELS = 3
"""Shades of a colour on either side of no difference."""
LOG_FROM = 20.0
"""Ratio of the largest to the smallest value from which on an axis is logarithmic."""


@dataclass(frozen=True)
class Tick:
    """A mark of an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Lane:
    """One row of a forest plot."""

    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Forest:
    """Differences with their intervals, in one column."""

    zero: float
    ticks: tuple[Tick, ...]
    lanes: tuple[Lane, ...]


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


class Axis:
    """Maps values to per cent of a width."""

    def __init__(self, low: float, high: float, *, logarithmic: bool = False) -> None:
        self.logarithmic = logarithmic
        self.low, self.high = low, high if high > low else low + 1.0

    def at(self, value: float) -> float:
        """Place of a value."""
        low, high, here = self.low, self.high, value
        if self.logarithmic:
            low, high, here = math.log(low), math.log(high), math.log(value)

        share = (here - low) / (high - low)
        return round(EDGE + (100 - 2 * EDGE) * share, 2)

    def ticks(self) -> list[float]:
        """Round values to mark."""
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            return [10.0**power for power in range(first, last + 1)]

        step = _round_step((self.high - self.low) / 5)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def _round_step(about: float) -> float:
    """The next of 1, 2, 5, 10, 20 … that is not smaller."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= about * 0.999)


def forest(comparison: ComparisonData) -> Forest | None:
    """The forest plot of a comparison; None where nothing is compared."""
    ends = [0.0]
    for difference in comparison.differences:
        ends += [difference.delta, difference.low or 0.0, difference.high or 0.0]

    if len(ends) == 1:
        return None

    axis = Axis(min(ends), max(ends))
    lanes = tuple(
        Lane(
            at=axis.at(difference.delta),
            low=None if difference.low is None else axis.at(difference.low),
            high=None if difference.high is None else axis.at(difference.high),
        )
        for difference in comparison.differences
    )
    ticks = tuple(
        Tick(axis.at(value), f"{comparison.scale * value:+.3g}" if value else "0")
        for value in axis.ticks()
    )
    return Forest(zero=axis.at(0.0), ticks=ticks, lanes=lanes)


def shade(value: float | None, largest: float) -> str:
    """Class of a coloured figure: `plus1` … `plus3`, `minus1` … `minus3`, or `none`."""
    if value is None or largest <= 0 or abs(value) < 0.05 * largest:
        return "none"

    level = min(LEVELS, 1 + int(LEVELS * abs(value) / largest))
    return f"{'plus' if value > 0 else 'minus'}{level}"


def largest_difference(conversations: Sequence[ConversationData]) -> float:
    """The largest difference in any conversation: what the shades are relative to."""
    return max(
        (
            abs(difference)
            for conversation in conversations
            for difference in conversation.differences
            if difference is not None
        ),
        default=0.0,
    )


def frontiers(cells: Sequence[CellData]) -> tuple[Frontier, ...]:
    """Accuracy against tokens of context, dollars and latency, where the cells differ in them."""
    axes: list[tuple[str, str, Callable[[float | None], str]]] = [
        ("Context, tokens per question", "context_tokens", short_count),
        ("Cost without the cache, US dollars", "cost_usd_uncached/total", dollars),
        ("Latency of an answer, median", "latency_ms/answer/p50", milliseconds),
    ]
    made = [frontier(title, metric, cells, as_text) for title, metric, as_text in axes]
    return tuple(plot for plot in made if plot is not None)


def frontier(
    title: str,
    metric: str,
    cells: Sequence[CellData],
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

    logarithmic = min(costs) > 0 and max(costs) / min(costs) > LOG_FROM
    across = Axis(min(costs) if logarithmic else 0.0, max(costs), logarithmic=logarithmic)
    accuracies = [accuracy for _, _, _, accuracy in rows]
    room = max(0.02, 0.15 * (max(accuracies) - min(accuracies)))
    up = Axis(max(0.0, min(accuracies) - room), min(1.0, max(accuracies) + room))

    best = undominated([(cost, accuracy) for _, _, cost, accuracy in rows])
    points = tuple(
        Point(
            number=number,
            label=cell.label,
            x=across.at(cost),
            y=round(100 - up.at(accuracy), 2),
            on_frontier=(cost, accuracy) in best,
            x_text=as_text(cost),
            y_text=percent(accuracy),
        )
        for number, cell, cost, accuracy in rows
    )
    return Frontier(
        title=title,
        points=points,
        steps=steps(points),
        x_ticks=tuple(
            Tick(across.at(value), as_text(value) if value else "0") for value in across.ticks()
        ),
        y_ticks=tuple(
            Tick(round(100 - up.at(value), 2), percent(value, 0)) for value in up.ticks()
        ),
    )


def undominated(points: Sequence[tuple[float, float]]) -> set[tuple[float, float]]:
    """The points (cost, accuracy) than which none is at most as dear and more accurate, or as
    accurate and cheaper.
    """
    best: set[tuple[float, float]] = set()
    highest = -math.inf
    for cost, accuracy in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if accuracy > highest:
            best.add((cost, accuracy))
            highest = accuracy

    return best


def steps(points: Sequence[Point]) -> tuple[tuple[float, float, float, float], ...]:
    """The line of the frontier, as steps: the best accuracy that can be had up to a cost."""
    places = sorted({(point.x, point.y) for point in points if point.on_frontier})
    lines = []
    for (x, y), (next_x, next_y) in pairwise(places):
        lines += [(x, y, next_x, y), (next_x, y, next_x, next_y)]

    if places:
        lines.append((*places[-1], 100.0, places[-1][1]))

    return tuple(lines)
