"""The plots of one run."""

from msgspec.structs import replace

from memeval.metrics.formats import count, percent
from memeval.report.confusion import UNPARSED, Confusion, share
from memeval.report.plots.model import (
    BLUE,
    GREY,
    Axis,
    Mark,
    MarkStyle,
    MatrixCell,
    Panel,
    Plot,
    PlotText,
    named_axis,
    wrap_name,
    wrap_title,
)
from memeval.results import RunSummary

WIDEST = 200.0
"""Inches. A plot of more categories than fit is crowded, but can be drawn."""


def run_plots(summary: RunSummary, positions: Confusion | None = None) -> dict[str, Plot]:
    """The plots of one run that have contents, by name."""
    plots = {}
    if any(row.accuracy is not None for row in summary.categories):
        plots["accuracy_by_category"] = category_plot(summary)
    if positions:
        plots["positions"] = positions_plot(positions, summary.name)

    return plots


def category_plot(summary: RunSummary) -> Plot:
    """Bars of accuracy with 95 % intervals.

    The categories that are not in the headline are separate, in grey.
    """
    rows = sorted(summary.categories, key=lambda row: not row.headline)
    inside = sum(row.headline for row in rows)
    marks, words = [], []
    ticks: dict[float, str] = {}
    for index, row in enumerate(rows):
        # A gap before the categories that are not in the accuracy.
        x, colour = float(index), BLUE
        if index >= inside:
            x, colour = index + 0.5, GREY

        ticks[x] = f"{wrap_name(row.name)}\nn = {count(row.n)}"
        value, low, high = row.share.percent
        if value is None:
            words.append(PlotText(x, 1.5, "not\nscored", GREY))
            continue

        marks.append(Mark(x, value, MarkStyle(colour, "none"), low, high))
        words.append(PlotText(x, max(value, high or 0.0) + 1.5, percent(row.accuracy)))

    places = list(ticks)
    if 0 < inside < len(rows):
        remark = "these are not in accuracy"
        if len(rows) == inside + 1:
            remark = "not in accuracy"

        words.append(PlotText((places[inside] + places[-1]) / 2, 107, remark, GREY))

    levels: dict[float, str] = {value: str(value) for value in range(0, 101, 20)}
    panel = Panel(
        across=Axis(-0.6, places[-1] + 0.6, ticks=ticks, has_grid=False, edge=0.0),
        # Above 100 there is room for figures and remarks.
        up=Axis(0, 112, "accuracy, %", levels, edge=0.0),
        marks=marks,
        words=words,
        has_bars=True,
    )
    width = min(WIDEST, max(5.0, 1.6 + 1.05 * len(rows)))
    return Plot(wrap_title(summary.name, int(12 * width)), [[panel]], width, height=4.0)


def positions_plot(matrix: Confusion, name: str) -> Plot:
    """Confusion matrix of choices: shares per row as shades, and counts.

    Replies that could not be read are separate, in grey.
    """
    size, rows = matrix.positions, matrix.rows()
    cells = []
    for right, row in enumerate(rows):
        for column, number in enumerate(row):
            # Downwards, as a table is read.
            cell = MatrixCell(column, size - 1 - right, "·", shade=0.0, is_framed=column == right)
            if number:
                cell = replace(cell, text=count(number), shade=(number / sum(row)) ** 0.7)
            if column == size:
                cell = replace(cell, x=column + 0.35, colour=GREY)

            cells.append(cell)

    total = sum(map(sum, rows))
    ticks: dict[float, str] = {}
    for position, chosen in enumerate(zip(*rows, strict=True)):
        at: float = position
        header = str(position)
        if position == size:
            header, at = UNPARSED, position + 0.35

        ticks[at] = f"{header}\n{share(sum(chosen), total)} %"

    names = [f"{right}   n = {count(sum(row))}" for right, row in enumerate(rows)]
    panel = Panel(
        across=Axis(-0.55, size + 0.9, "position chosen", ticks, has_grid=False, edge=0.0),
        up=named_axis(names[::-1], "position of the right choice", room=0.55),
        cells=cells,
    )
    width = 1.9 + 0.52 * (size + 2)
    return Plot(wrap_title(name, int(11 * width)), [[panel]], width, height=1.7 + 0.46 * size)
