"""Accuracy against a number that a sweep varies (`top_k`, `compression_turn`, the haystack's size):
one line per system, with 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.names import file_name
from memeval.report.canvas import (
    PALE,
    Look,
    add_series_legend,
    canvas,
    looks_of,
    name_datasets,
    save,
    wrap_title,
)
from memeval.report.differences import UNNAMED, differing, labels, system_of
from memeval.results import RunSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TOKENS = "dataset.tokens"
"""The setting that says how large a haystack is."""
WORDS = {
    TOKENS: "haystack, tokens",
    "top_k": "top_k, chunks that the reader is shown",
    "compression_turn": "compression_turn, the turn after which the memory is compressed",
}
MOST_CURVES = 6
"""Plots of one sweep: a sweep of many numbers has its figures in the tables."""
MOST_TICKS = 10
LOG_FROM = 10.0
"""Ratio of the largest to the smallest value from which on an axis is logarithmic."""

Lines = Mapping[str, Sequence[RunSummary]]
"""Cells by what they differ in besides the number, the smallest number first."""


@dataclass(frozen=True)
class Curves:
    """The lines over one number."""

    setting: str
    lines: Lines

    @property
    def values(self) -> list[float]:
        """All values of the number, the smallest first."""
        cells = [cell for line in self.lines.values() for cell in line]
        return sorted({value_of(cell, self.setting) for cell in cells})

    @property
    def is_logarithmic(self) -> bool:
        """Whether the axis of the number is."""
        return self.values[0] > 0 and self.values[-1] > LOG_FROM * self.values[0]


def curves_of(summaries: Sequence[RunSummary]) -> list[Curves]:
    """The numbers that the cells vary, each with its lines, where one has two points or more."""
    measured = [cell for cell in summaries if cell.metrics.get("accuracy") is not None]
    drawable = []
    for setting in differing(measured):
        if setting in UNNAMED:
            continue

        cells = [cell for cell in measured if is_number(cell.params.get(setting))]
        lines = by_line(cells, setting)
        with_points = {name: line for name, line in lines.items() if has_two_values(line, setting)}
        if with_points:
            drawable.append(Curves(setting, with_points))

    return drawable[:MOST_CURVES]


def is_number(value: object) -> bool:
    """Whether a setting is a number: `never` and `middle` of a compression turn are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def has_two_values(line: Sequence[RunSummary], setting: str) -> bool:
    """Whether there is a line to draw."""
    return len({value_of(cell, setting) for cell in line}) > 1


def value_of(cell: RunSummary, setting: str) -> float:
    """The number of a cell."""
    return float(cell.params[setting] or 0)


def by_line(cells: Sequence[RunSummary], setting: str) -> Lines:
    """The cells as lines over the number, in the order in which their first cells came."""
    without_number = []
    for cell in cells:
        params = {key: value for key, value in cell.params.items() if key != setting}
        without_number.append(replace(cell, params=params))

    lines: dict[str, list[RunSummary]] = {}
    for name, cell in zip(labels(without_number), cells, strict=True):
        # Where nothing else differs, a label is a run's own name, which holds the number.
        key = name if differing(without_number) else system_of(cell)
        lines.setdefault(key, []).append(cell)

    return {
        name: sorted(line, key=lambda cell: value_of(cell, setting)) for name, line in lines.items()
    }


def curve_file(setting: str) -> str:
    """The name of a curve's picture: `curve_top_k.png`."""
    if setting == TOKENS:
        return "haystack_scale.png"

    name = setting.replace(".", "_")
    return f"curve_{file_name(name)}.png"


def curve_plot(curves: Curves, path: Path) -> Path:
    """Draws the lines over one number."""
    figure, axes = canvas(width=8.4, height=4.6)
    best_last = sorted(curves.lines, key=lambda name: accuracy(curves.lines[name][-1]))
    # The legend lists the systems as their lines end at the right: the best one first.
    looks = looks_of(curves.lines)
    add_series_legend(figure, {name: looks[name] for name in reversed(best_last)})

    if curves.is_logarithmic:
        axes.set_xscale("log")

    shifts = shifts_of(curves)
    for name, line in curves.lines.items():
        xs = [shift(value_of(cell, curves.setting), shifts[name], curves) for cell in line]
        draw_line(axes, xs, line, looks[name])

    set_number_axis(axes, curves)
    cells = [cell for line in curves.lines.values() for cell in line]
    set_accuracy_axis(axes, [bounds(cell)[1] for cell in cells])

    datasets = name_datasets([cell.dataset for cell in cells])
    title = f"accuracy against {curves.setting}, {datasets}"
    if not all(cell.valid for cell in cells):
        title += "; hollow: INVALID"

    axes.set_title(wrap_title(title, width=86), loc="left", fontsize=10)

    return save(figure, path)


def shifts_of(curves: Curves) -> dict[str, float]:
    """How far each line is moved, from -1 to 1: else intervals of one number cover each other."""
    count = len(curves.lines)
    return {
        name: 2 * index / (count - 1) - 1 if count > 1 else 0.0
        for index, name in enumerate(curves.lines)
    }


def shift(value: float, by: float, curves: Curves) -> float:
    """Where a value is drawn: near enough to its place to belong to it, and inside the axes."""
    values = curves.values
    if curves.is_logarithmic:
        steps = [high / low for low, high in pairwise(values)]
        return float(value * min(*steps, 2.0) ** (by / 8))

    steps = [high - low for low, high in pairwise(values)]
    return value + by * min(min(steps) / 8, 0.02 * (values[-1] - values[0]))


def set_number_axis(axes: Axes, curves: Curves) -> None:
    """Marks the values that were measured, as far as there is room for them."""
    values = curves.values
    # Among many values, every n-th is marked; the last one always is.
    every = -(-len(values) // MOST_TICKS)
    marked = values[::-every][::-1]
    axes.set_xticks(marked, [short(value) for value in marked])
    axes.minorticks_off()
    if curves.is_logarithmic:
        axes.set_xlim(values[0] / 1.4, values[-1] * 1.4)
    else:
        room = 0.08 * (values[-1] - values[0])
        axes.set_xlim(values[0] - room, values[-1] + room)

    axes.set_xlabel(WORDS.get(curves.setting, curves.setting))


def set_accuracy_axis(axes: Axes, tops: Sequence[float]) -> None:
    """The axis upwards, from 0 to a little above the highest interval."""
    axes.set_ylim(-1, min(104.0, 1.08 * max([10.0, *tops])))
    axes.set_ylabel("accuracy, %, with its 95 % interval")
    axes.grid(axis="y", color=PALE, linewidth=0.8)


def draw_line(axes: Axes, xs: Sequence[float], line: Sequence[RunSummary], look: Look) -> None:
    """Draws one system's cells; hollow where a cell is invalid."""
    values = [accuracy(cell) for cell in line]
    draw_intervals(axes, xs, values, [bounds(cell) for cell in line], look)
    axes.plot(
        xs,
        values,
        look.line,
        marker=look.mark,
        color=look.colour,
        markersize=6,
        linewidth=1.6,
        zorder=3,
    )

    for x, y, cell in zip(xs, values, line, strict=True):
        if not cell.valid:
            axes.plot(
                x,
                y,
                look.mark,
                color=look.colour,
                markerfacecolor="white",
                markersize=6,
                zorder=4,
            )


def draw_intervals(
    axes: Axes,
    xs: Sequence[float],
    values: Sequence[float],
    ends: Sequence[tuple[float, float]],
    look: Look,
) -> None:
    """Draws 95 % intervals, paler than the line through their points."""
    below = [max(0.0, value - low) for value, (low, _) in zip(values, ends, strict=True)]
    above = [max(0.0, high - value) for value, (_, high) in zip(values, ends, strict=True)]
    axes.errorbar(
        xs,
        values,
        yerr=[below, above],
        fmt="none",
        ecolor=look.colour,
        alpha=0.45,
        capsize=2,
        linewidth=1,
        zorder=2,
    )


def bounds(cell: RunSummary) -> tuple[float, float]:
    """Ends of a cell's interval, in per cent; its accuracy where there is none."""
    low, high = cell.metrics.get("accuracy_ci95_low"), cell.metrics.get("accuracy_ci95_high")
    value = accuracy(cell)
    return (value, value) if low is None or high is None else (100 * low, 100 * high)


def accuracy(summary: RunSummary) -> float:
    """In per cent."""
    return 100 * float(summary.metrics["accuracy"] or 0)


def short(value: float) -> str:
    """A number as ticks have it: `0.5`, `500`, `10k`, `2.5M`."""
    for factor, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= factor:
            return f"{value / factor:g}{letter}"

    return f"{value:g}"
