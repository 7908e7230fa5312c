"""Content of a plot: marks with their intervals, axes and words, in the units of the measurements.

Files are drawn from it by matplotlib, and the page draws it as SVG. On both a value is at the same
percentage of the width or height.
"""

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, product
from typing import Self

from msgspec import Struct, field
from msgspec.structs import replace

from memeval.results import RunSummary
from memeval.text.shown import one_line

BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#8C8C8C", "#333333"
"""Okabe and Ito's colours, which colour-blind people can distinguish, and two neutral ones."""
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", GREY)
"""Okabe and Ito's, without the yellow, which is too pale on white."""
MARKS = "osD^vPX*"
LONGEST_NAME = 120
"""Maximum length of a name in a plot, in characters."""
ACCURACY = "accuracy, %, with its 95 % interval"


class MarkStyle(Struct, frozen=True):
    """Colour and shape of a mark: no two series differ only in colour."""

    colour: str
    mark: str
    line: str = "-"
    is_hollow: bool = False
    edge: str = ""
    """Colour of the outline; empty means the mark's own."""


class Mark(Struct, frozen=True):
    """A measured value with its 95 % interval."""

    x: float
    y: float
    style: MarkStyle
    low: float | None = None
    high: float | None = None
    """Ends of the interval: along the rows of a panel that has rows, else vertical."""
    name: str = ""
    text: str = ""
    """The figures in words."""
    run_key: str = ""
    is_best: bool = False
    """Whether it is on the frontier."""
    aside: float = 0.0
    """Sideways shift in per cent of the width, so that intervals do not cover each other."""

    @property
    def top(self) -> float:
        """The upper end of the interval, else the value."""
        return self.y if self.high is None else self.high


class MatrixCell(Struct, frozen=True):
    x: float
    y: float
    text: str
    shade: float
    """From 0 to 1."""
    colour: str = BLUE
    is_framed: bool = False


class PlotText(Struct, frozen=True):
    x: float
    y: float
    text: str
    colour: str = INK


class Axis(Struct, frozen=True):
    """Maps values to per cent of a width or height."""

    low: float
    high: float
    title: str = ""
    ticks: Mapping[float, str] = field(default_factory=dict)
    """The marked values, with their labels."""
    is_logarithmic: bool = False
    has_grid: bool = True
    edge: float = 4.0
    """Per cent of the axis left free at each end."""

    def at(self, value: float) -> float:
        """Position of a value. On a logarithmic axis, 0 is at the beginning."""
        low, high, here = self.low, self.high, value
        if self.is_logarithmic:
            here = max(here, low)
            low, high, here = math.log(low), math.log(high), math.log(here)

        # A single value gives an axis of zero length.
        share = (here - low) / ((high - low) or 1.0)
        return round(self.edge + (100 - 2 * self.edge) * share, 2)

    def with_ticks(self, label: Callable[[float], str], about: int = 6) -> Self:
        """The axis with about `about` round values marked."""
        return replace(self, ticks={value: label(value) for value in self.round_values(about)})

    def round_values(self, about: int = 6) -> list[float]:
        """Round values to mark, about `about` of them."""
        if self.is_logarithmic:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            powers = [10.0**power for power in range(first, last + 1)]
            inside = self._inside(powers)
            if len(inside) > 2:
                return inside[:: math.ceil(len(inside) / about)]

            # More marks are needed: 1, 3, 10, 30 …
            return self._inside([power * digit for power, digit in product(powers, (1, 3))])

        step = _round_step((self.high - self.low or 1.0) / about)
        # A rounding error must not drop the first mark or the last.
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _inside(self, values: Sequence[float]) -> list[float]:
        return [value for value in values if self.low <= value <= self.high * (1 + 1e-9)]


class Panel(Struct, frozen=True):
    """One pair of axes and the marks between them."""

    across: Axis
    up: Axis
    title: str = ""
    marks: Sequence[Mark] = ()
    lines: Sequence[Sequence[Mark]] = ()
    """Marks that are joined by a line."""
    steps: Sequence[tuple[float, float]] = ()
    """The frontier."""
    area: str = ""
    """Value of the frontier, in words."""
    cells: Sequence[MatrixCell] = ()
    words: Sequence[PlotText] = ()
    has_rows: bool = False
    """Whether each vertical tick names a row; the text of a mark is then to the right of it."""
    has_zero: bool = False
    """Whether a line marks 0 on the axis across."""
    has_bars: bool = False
    """Whether there is a bar from 0 up to each mark."""
    has_names: bool = False
    """Whether marks have their names next to them in files."""

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Position of a pair of values, in per cent of the width and of the height."""
        return self.across.at(x), self.up.at(y)

    @property
    def all_marks(self) -> list[Mark]:
        return [*self.marks, *chain.from_iterable(self.lines)]


class Plot(Struct, frozen=True):
    """A picture of one or more panels, by row."""

    title: str
    panels: Sequence[Sequence[Panel]]
    width: float
    height: float
    """In inches."""
    legend: dict[str, MarkStyle] = field(default_factory=dict)
    has_legend_below: bool = False
    widths: Sequence[float] | None = None
    """Relative widths of the panels."""


def _round_step(about: float) -> float:
    """The first of 1, 2, 5, 10, 20 … that is not smaller than `about`."""
    power = 10.0 ** math.floor(math.log10(about))
    for digit in (1, 2, 5):
        if power * digit >= about * 0.999:
            return power * digit

    return power * 10


def named_axis(
    names: Sequence[str], title: str = "", *, has_grid: bool = False, room: float = 0.5
) -> Axis:
    """An axis with a place for each name, starting at 0."""
    ticks: dict[float, str] = dict(enumerate(names))
    return Axis(-room, len(names) - 1 + room, title, ticks, has_grid=has_grid, edge=0.0)


def accuracy_axis(marks: Iterable[Mark]) -> Axis:
    """The vertical axis, in per cent, from 0 to a little above the highest interval."""
    highest = max([10.0, *(mark.top for mark in marks)])
    return Axis(0.0, min(100.0, 1.08 * highest), ACCURACY).with_ticks("{:g}".format, about=8)


def styles_of(names: Iterable[str]) -> dict[str, MarkStyle]:
    """A style for each name, in the order in which the names first occur."""
    styles = {}
    for index, name in enumerate(dict.fromkeys(names)):
        lap = index // len(COLOURS)
        styles[name] = MarkStyle(
            colour=COLOURS[index % len(COLOURS)],
            # In the second lap each colour gets another shape.
            mark=MARKS[(index + lap) % len(MARKS)],
            line="--" if lap % 2 else "-",
        )

    return styles


def mark_of(cell: RunSummary, x: float, style: MarkStyle, name: str, text: str = "") -> Mark:
    """The mark of a run that has an accuracy; hollow if the run is invalid."""
    value, low, high = cell.share().percent
    style = replace(style, is_hollow=not cell.valid)
    return Mark(x, value or 0.0, style, low, high, name, text, run_key=cell.run_key)


def wrap_name(name: str) -> str:
    """A category's name on short lines: `single-session-user` on three; a long word is broken."""
    words = "\n".join(re.split(r"[-_ ]", one_line(name, LONGEST_NAME)))
    return re.sub(r"\S{14}(?=\S\S)", r"\g<0>-\n", words)


def wrap_title(text: str, width: int) -> str:
    """A title on lines of at most `width` characters."""
    return "\n".join(textwrap.wrap(one_line(text, 2 * LONGEST_NAME), width))


def title_of_cells(text: str, cells: Sequence[RunSummary]) -> str:
    """A wrapped title, with the meaning of hollow marks if a cell is invalid."""
    if not all(cell.valid for cell in cells):
        text += "; hollow: INVALID"

    return wrap_title(text, width=86)


def name_datasets(cells: Sequence[RunSummary]) -> str:
    """The data sets of a plot, for its title."""
    return ", ".join(sorted({cell.dataset for cell in cells}))
