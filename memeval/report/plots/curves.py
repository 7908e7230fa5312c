"""Accuracy against a number that a sweep varies (`top_k`, `compression_turn`, the haystack's size):
one line per system, with 95 % intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TypeGuard

from msgspec import Struct, structs

from memeval.metrics.formats import percent
from memeval.report.differences import UNNAMED, differing_settings, labels, system_of
from memeval.report.plots.model import (
    Axis,
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
from memeval.text.names import file_name

TOKENS = "dataset.tokens"
"""The setting for the size of a haystack."""
WORDS = {
    TOKENS: "haystack, tokens",
    "top_k": "top_k, chunks shown to the reader",
    "context_tokens": "context_tokens, maximum tokens shown to the reader",
    "compression_turn": "compression_turn, turn after which the memory is compressed",
}
MAX_CURVES = 6
"""Maximum number of plots of one sweep; a sweep of more numbers has its figures in the tables."""
LOG_FROM = 10.0
"""If the largest value is more than this many times the smallest, the axis is logarithmic."""
ASIDE = 0.9
"""Half of the distance between two lines at one number, in per cent of the width."""
TICK = 6.0
"""Width of a tick's label, in per cent of the plot's width."""

Lines = Mapping[str, Sequence[RunSummary]]
"""Cells by line: those of a line differ only in the number, and the smallest number is first."""


class Curves(Struct, frozen=True):
    """The lines over one number."""

    setting: str
    lines: Lines
    styles: Mapping[str, MarkStyle]
    """By line; a system looks the same on all plots of a sweep."""

    @property
    def cells(self) -> list[RunSummary]:
        return list(chain.from_iterable(self.lines.values()))

    @property
    def values(self) -> list[float]:
        """All values of the number, the smallest first."""
        return sorted({value_of(cell, self.setting) for cell in self.cells})


def curves_of(summaries: Sequence[RunSummary]) -> list[Curves]:
    """The numbers that the cells vary, each with its lines of two points or more."""
    measured = [cell for cell in summaries if cell.metrics.get("accuracy") is not None]
    systems = list(map(system_of, summaries))
    drawable = []
    for setting in differing_settings(measured):
        if setting in UNNAMED:
            continue

        cells = [cell for cell in measured if is_number(cell.params.get(setting))]
        lines = by_line(cells, setting)
        # The smallest number is first.
        with_points = {
            name: line
            for name, line in lines.items()
            if value_of(line[0], setting) < value_of(line[-1], setting)
        }
        if with_points:
            styles = styles_of(systems if set(lines) <= set(systems) else lines)
            drawable.append(Curves(setting, with_points, styles))

    return drawable[:MAX_CURVES]


def is_number(value: object) -> TypeGuard[float]:
    """Whether a setting is a number: `never` and `middle` of a compression turn are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def value_of(cell: RunSummary, setting: str) -> float:
    value = cell.params.get(setting)
    if not is_number(value):
        return 0.0

    return float(value)


def by_line(cells: Sequence[RunSummary], setting: str) -> Lines:
    """The cells as lines over the number, in the order of their first cells."""
    without_number = []
    for cell in cells:
        params = dict(cell.params)
        params.pop(setting, None)
        without_number.append(replace(cell, params=params))

    # If nothing else differs, a label is a run's own name, which contains the number.
    names = labels(without_number, apart=False)
    if not differing_settings(without_number):
        names = list(map(system_of, cells))

    lines: dict[str, list[RunSummary]] = {}
    for name, cell in zip(names, cells, strict=True):
        lines.setdefault(name, []).append(cell)

    for line in lines.values():
        line.sort(key=lambda cell: value_of(cell, setting))

    return lines


def curve_name(setting: str) -> str:
    """The name of a curve's picture: `curve_top_k`."""
    if setting == TOKENS:
        return "haystack_scale"

    name = setting.replace(".", "_")
    return f"curve_{file_name(name)}"


def curve_plot(curves: Curves) -> Plot:
    """The lines over one number, with their legend."""
    # The legend lists the systems in the order of their lines' right ends: the best one first.
    worst_first = sorted(
        curves.lines, key=lambda name: curves.lines[name][-1].metrics["accuracy"] or 0
    )
    legend = {name: curves.styles[name] for name in reversed(worst_first)}

    title = f"accuracy against {curves.setting}, {name_datasets(curves.cells)}"
    return Plot(
        title=title_of_cells(title, curves.cells),
        panels=[[curve_panel(curves)]],
        width=8.4,
        height=4.6,
        legend=legend,
    )


def curve_panel(curves: Curves) -> Panel:
    """The lines over one number."""
    across = number_axis(curves)
    sides = sideways_shifts(len(curves.lines), list(map(across.at, curves.values)))
    lines = []
    for (name, line), aside in zip(curves.lines.items(), sides, strict=True):
        marks = []
        for cell in line:
            value = value_of(cell, curves.setting)
            text = f"{short_number(value)}, {percent(cell.metrics['accuracy'])} %"
            mark = mark_of(cell, value, curves.styles[name], name, text)
            marks.append(structs.replace(mark, aside=aside))

        lines.append(marks)

    up = accuracy_axis(chain.from_iterable(lines))
    return Panel(across=structs.replace(across, has_grid=False), up=up, lines=lines)


def number_axis(curves: Curves) -> Axis:
    """The axis of the number, with ticks at those values whose labels have room."""
    values = curves.values
    axis = Axis(
        low=values[0],
        high=values[-1],
        title=WORDS.get(curves.setting, curves.setting),
        is_logarithmic=values[0] > 0 and values[-1] > LOG_FROM * values[0],
        edge=8.0,
    )
    ticks: dict[float, str] = {}
    last = -TICK
    for value in values:
        if axis.at(value) - last >= TICK:
            ticks[value] = short_number(value)
            last = axis.at(value)

    return structs.replace(axis, ticks=ticks)


def sideways_shifts(count: int, places: Sequence[float]) -> list[float]:
    """Sideways shift of each line, in per cent of the width, small enough to read its value."""
    if count == 1:
        return [0.0]

    steps = [right - left for left, right in pairwise(places)]
    most = min(ASIDE * (count - 1), min(steps) / 6)
    return [most * (2 * index / (count - 1) - 1) for index in range(count)]


def short_number(value: float) -> str:
    """A number as a tick label: `0.5`, `500`, `10k`, `2.5M`."""
    for factor, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= factor:
            return f"{value / factor:g}{letter}"

    return f"{value:g}"
