"""Curves over a number that the cells vary, as the page draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from memeval.metrics.formats import percent
from memeval.page.axis import Axis, Tick
from memeval.page.data import CurveData, CurvePoint, Share
from memeval.report.curves import LOG_FROM, WORDS, short

LINES = 6
"""Forms of a line in the style sheet, each with dashes of its own."""
SHIFT = 0.9
"""Per cent of the width between two lines at one number: else their intervals cover each other."""


@dataclass(frozen=True)
class Place:
    """Where a point and its interval are."""

    number: int
    """Of the cell in the table."""
    x: float
    y: float
    low: float
    high: float
    text: str


@dataclass(frozen=True)
class Line:
    """The cells of one system."""

    name: str
    form: int
    """From 1 to `LINES`."""
    places: tuple[Place, ...]

    @property
    def pieces(self) -> list[tuple[Place, Place]]:
        """Neighbours, between which a line is drawn."""
        return list(pairwise(self.places))


@dataclass(frozen=True)
class Curve:
    """One plot."""

    title: str
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def curve(data: CurveData) -> Curve:
    """The plot of one number."""
    values = sorted({point.value for line in data.lines.values() for point in line})
    logarithmic = values[0] > 0 and values[-1] > LOG_FROM * values[0]
    across = Axis(values[0], values[-1], logarithmic=logarithmic)
    highest = max(_ends(point.accuracy)[1] for line in data.lines.values() for point in line)
    up = Axis(0.0, min(1.0, 1.08 * max(0.1, highest)))

    lines = []
    middle = (len(data.lines) - 1) / 2
    for index, (name, points) in enumerate(data.lines.items()):
        places = [_place(point, across, up, SHIFT * (index - middle)) for point in points]
        lines.append(Line(name=name, form=index % LINES + 1, places=tuple(places)))

    return Curve(
        title=WORDS.get(data.setting, data.setting),
        lines=tuple(lines),
        x_ticks=tuple(Tick(across.at(value), short(value)) for value in _with_room(values, across)),
        y_ticks=tuple(
            Tick(round(100 - up.at(value), 2), percent(value, 0)) for value in up.ticks()
        ),
    )


def _with_room(values: Sequence[float], across: Axis) -> list[float]:
    """The values whose ticks do not run into each other."""
    kept: list[float] = []
    for value in values:
        if not kept or across.at(value) - across.at(kept[-1]) >= 6:
            kept.append(value)

    return kept


def _place(point: CurvePoint, across: Axis, up: Axis, aside: float) -> Place:
    low, high = _ends(point.accuracy)
    return Place(
        number=point.number,
        x=round(across.at(point.value) + aside, 2),
        y=round(100 - up.at(point.accuracy.value or 0.0), 2),
        low=round(100 - up.at(low), 2),
        high=round(100 - up.at(high), 2),
        text=f"{short(point.value)}, {percent(point.accuracy.value)} %",
    )


def _ends(share: Share) -> tuple[float, float]:
    """The ends of an interval; the share itself where there is none."""
    value = share.value or 0.0
    return (
        value if share.low is None else share.low,
        value if share.high is None else share.high,
    )
