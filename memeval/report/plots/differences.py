"""Differences between runs as pictures: a forest plot of intervals, and the differences by
conversation. Shape and fill distinguish marks, never colour alone.
"""

from collections.abc import Sequence
from decimal import Decimal
from textwrap import wrap

from msgspec import Struct

from memeval.report.plots.model import (
    BLUE,
    GREY,
    INK,
    LONGEST_NAME,
    ORANGE,
    Axis,
    Mark,
    MarkStyle,
    Panel,
    Plot,
    named_axis,
    wrap_title,
)
from memeval.text.shown import one_line

ROW = 0.27
"""Height of a row in inches: its name can be read even at half the size."""
LINE = 0.15
"""Height of each further line of a name, in inches."""
NAME = 46
"""Maximum length of a line of the name next to a row, in characters."""
SHOWN, NOT_SHOWN = MarkStyle(BLUE, "s"), MarkStyle(BLUE, "o", is_hollow=True)
CASE, ALL = MarkStyle(GREY, "|"), MarkStyle(ORANGE, "D", edge=INK)


class DifferenceRow(Struct, frozen=True):
    """A difference to be drawn, in the unit of the axis."""

    name: str
    delta: float
    low: float | None
    high: float | None
    is_shown: bool
    """Whether the data show a difference between the two runs."""
    text: str = ""
    """The difference and its interval as text: `+4.1 [0.9, 7.3]`."""
    cases: tuple[float, ...] = ()
    """The difference within each conversation."""


def forest_plot(rows: Sequence[DifferenceRow], title: str, unit: str) -> Plot:
    """Differences with their 95 % intervals, the highest on top."""
    ranked = sorted_rows(rows)
    panel = forest_panel(ranked, f"difference, {unit}, with its 95 % interval")
    legend = {"difference shown (adjusted p ≤ .05)": SHOWN, "no difference shown": NOT_SHOWN}
    return row_plot(title, panel, legend)


def forest_panel(rows: Sequence[DifferenceRow], title: str) -> Panel:
    """A row per difference, from the bottom up."""
    marks: list[Mark] = []
    ends: list[float] = []
    for height, row in enumerate(rows):
        style = SHOWN if row.is_shown else NOT_SHOWN
        marks.append(Mark(row.delta, height, style, row.low, row.high, text=row.text))
        ends += [end for end in (row.delta, row.low, row.high) if end is not None]

    return row_panel(rows, ends, title, marks)


def strip_plot(rows: Sequence[DifferenceRow], title: str, unit: str) -> Plot:
    """The difference within each conversation, and over all questions."""
    ranked = sorted_rows(rows)
    marks = []
    for height, row in enumerate(ranked):
        marks += [Mark(case, height, CASE) for case in row.cases]
        marks.append(Mark(row.delta, height, ALL))

    panel = row_panel(ranked, [mark.x for mark in marks], f"difference, {unit}", marks)
    legend = {"within one conversation": CASE, "over all questions": ALL}
    return row_plot(title, panel, legend)


def sorted_rows(rows: Sequence[DifferenceRow]) -> list[DifferenceRow]:
    """The rows from the lowest difference up, as the axis is drawn; equal ones by name."""
    return sorted(rows, key=lambda row: (row.delta, row.name))


def row_panel(
    rows: Sequence[DifferenceRow], values: Sequence[float], title: str, marks: Sequence[Mark]
) -> Panel:
    """A named row per difference, and a line at 0, which is always on the axis."""
    axis = Axis(min([0.0, *values]), max([0.0, *values]), title).with_ticks(difference_tick)
    # Long labels, such as `+0.00015`, need more room each.
    if max(map(len, axis.ticks.values())) > 6:
        axis = axis.with_ticks(difference_tick, about=3)

    return Panel(
        across=axis,
        up=row_axis([row.name for row in rows]),
        marks=marks,
        has_rows=True,
        has_zero=True,
    )


def row_axis(names: Sequence[str]) -> Axis:
    """A named row per run or pair. Many names differ only at the end: long ones are wrapped."""
    wrapped = ["\n".join(wrap(one_line(name, 2 * LONGEST_NAME), NAME)) for name in names]
    return named_axis(wrapped, has_grid=True, room=0.7)


def height_of(rows: Axis) -> float:
    """Height of a plot of rows in inches, without its title and its lower axis."""
    lines = max((name.count("\n") for name in rows.ticks.values()), default=0)
    return (ROW + LINE * lines) * max(len(rows.ticks), 2)


def difference_tick(value: float) -> str:
    """A difference on an axis: `+10`, `−0.5`, `+1,000`; never with an exponent."""
    if abs(value) <= 1e-9:
        return "0"

    return f"{Decimal(f'{value:.3g}'):+,f}".replace("-", "−")


def row_plot(title: str, panel: Panel, legend: dict[str, MarkStyle]) -> Plot:
    """A plot of rows, high enough for their names."""
    return Plot(
        title=wrap_title(title, width=90),
        panels=[[panel]],
        width=8.4,
        height=1.6 + height_of(panel.up),
        legend=legend,
        has_legend_below=True,
    )
