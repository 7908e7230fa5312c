"""Accuracy against cost: a picture for each price, with names that overlap nothing."""

from collections.abc import Iterator, Sequence
from functools import partial
from unicodedata import east_asian_width

from msgspec import Struct

from memeval.metrics.formats import percent
from memeval.packages.board.records import BoardRow
from memeval.report.plots.labelling import PlotArea, needs_line, place_name
from memeval.report.plots.model import INK, Mark, MarkStyle, Panel
from memeval.report.plots.prices import frontier_panel, prices
from memeval.results.summary import Share
from memeval.text.shown import one_line

PRICES = {
    "cost": ("usd_per_1000", "US dollars per 1,000 questions"),
    "latency": ("latency_p50_ms", "median latency of an answer"),
    "context": ("context_tokens", "context, tokens per question"),
}
"""Figure of a row and title of its axis, by price."""
MAX_NAMED = 30
LONGEST_NAME = 22
"""Maximum length of a name, in characters."""
HEIGHT = 300
WIDTHS = (290, 400, 520, 640)
"""Height and widths of a picture, in pixels, from the narrowest width to the widest. Points move
apart as it gets wider, while names keep their size.
"""
LINE = 13.0
LETTER, NARROW, WIDE = 7.6, 4.8, 11.8
"""Pixels: the height of a line; the maximum widths of most letters, of narrow and of wide ones."""


class Name(Struct, frozen=True):
    """A name next to its point."""

    mark: Mark
    text: str
    right: float
    """Pixels from the point to the beginning of the name, or to its end if `is_left`."""
    down: float
    """Pixels from the point down to the middle of the name."""
    is_left: bool
    """Whether all of it is left of the point."""

    @property
    def leads(self) -> bool:
        """Whether it needs a line to its point."""
        return needs_line(self.down, LINE)


class Scatter(Struct, frozen=True):
    """A pair of axes with named points."""

    panel: Panel
    names: tuple[Name, ...]


def pictures(rows: Sequence[BoardRow]) -> list[Scatter]:
    """The accuracy of rows against each price in which they differ."""
    made = []
    for name, (figure, title) in PRICES.items():
        price = prices()[name]
        marks, fair = [], []
        for row in rows:
            cost = getattr(row, figure)
            if cost is not None and row.accuracy is not None:
                marks.append(_mark(row, cost, price.unit.short(cost)))
                fair.append(row.valid and row.kind != "oracle")

        if len({mark.x for mark in marks}) < 2:
            continue

        panel = frontier_panel(marks, fair, price, title)
        made.append(Scatter(panel, tuple(_names(panel))))

    return made


def _mark(row: BoardRow, cost: float, text: str) -> Mark:
    value, low, high = Share(row.accuracy, row.low, row.high).percent
    words = f"{percent(row.accuracy)} %, {text}"
    return Mark(
        cost, value or 0.0, MarkStyle(INK, "o"), low, high, row.label, words, run_key=row.key
    )


def _names(panel: Panel) -> Iterator[Name]:
    """A place for each name, those of the frontier first, that is free at every width; a name
    without one is left out.
    """
    areas = [PlotArea((0, 0, width, HEIGHT), partial(_pixels, panel, width)) for width in WIDTHS]
    for area in areas:
        area.keep_clear(panel.marks, across=6, up=6, interval=2)

    order = sorted(panel.marks, key=lambda mark: (not mark.is_best, -mark.y, mark.name))
    for mark in order[:MAX_NAMED]:
        text = one_line(mark.name)
        # Names often differ only at their ends, as in a version.
        if len(text) > LONGEST_NAME:
            text = f"{text[: LONGEST_NAME // 2]}…{text[1 - LONGEST_NAME // 2 :]}"

        wide = sum(map(_letter_width, text))
        offset = place_name(mark, (wide, LINE), areas)
        if offset is not None:
            right, down = offset
            is_left = right + wide < 0
            near = right + wide if is_left else right
            yield Name(mark, text, round(near, 1), round(down, 1), is_left)


def _letter_width(letter: str) -> float:
    if letter in "mwMW@%" or east_asian_width(letter) in "FW":
        return WIDE

    return NARROW if letter in "fijlrtI.,:;|' ()[]" else LETTER


def _pixels(panel: Panel, width: int, x: float, y: float) -> tuple[float, float]:
    """Pixels from the left and from the top."""
    right, up = panel.at(x, y)
    return right / 100 * width, (100 - up) / 100 * HEIGHT
