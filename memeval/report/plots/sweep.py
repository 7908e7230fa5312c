"""The plots of a sweep's cells.

The ranked plot has the accuracy, and next to it each category, in panels with one row per cell. It
stays legible if a plot of points has no room for names.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from memeval.report.categories import columns_of, rows_of, titles_of
from memeval.report.differences import labels, system_of
from memeval.report.plots.curves import curve_name, curve_plot, curves_of
from memeval.report.plots.depth import depth_plots
from memeval.report.plots.differences import height_of, row_axis
from memeval.report.plots.model import (
    BLUE,
    ORANGE,
    Axis,
    Mark,
    MarkStyle,
    Panel,
    Plot,
    name_datasets,
    wrap_name,
    wrap_title,
)
from memeval.report.plots.prices import prices, prices_paid, sweep_plot
from memeval.results import RunSummary
from memeval.results.summary import Share

PANEL = 1.15
"""Width of the panel of a category, in inches."""
MAX_CATEGORIES = 8
"""Maximum number of panels next to that of the accuracy; further categories are in the tables."""
CONTROLS = ("oracle", "no_memory", "random_k", "constant")


def sweep_plots(summaries: Sequence[RunSummary], suffix: str = "") -> dict[str, Plot]:
    """The plots of the cells of one data set by name: against context, by rank, against cost, over
    each number that the sweep varies, and the results of haystacks.

    `suffix` ends the names, if the sweep has several data sets. Those without a mark are left out.
    """
    plots = {}
    if prices_paid(summaries, prices()["context"]):
        plots[f"comparison{suffix}"] = sweep_plot(summaries)
    if any(cell.metrics.get("accuracy") is not None for cell in summaries):
        plots[f"comparison{suffix}_ranked"] = ranked_plot(summaries)
    if len(prices_paid(summaries, prices()["cost"])) > 1:
        plots[f"comparison{suffix}_cost"] = sweep_plot(summaries, "cost")

    for curves in curves_of(summaries):
        plots[f"{curve_name(curves.setting)}{suffix}"] = curve_plot(curves)

    return plots | depth_plots(summaries, suffix)


def ranked_plot(summaries: Sequence[RunSummary]) -> Plot:
    """Cells from the highest accuracy down, with 95 % intervals, invalid ones last.

    Controls and invalid cells are marked by shape and fill.
    """
    measured = [cell for cell in summaries if cell.metrics.get("accuracy") is not None]
    named = sorted(
        zip(measured, labels(measured), strict=True),
        # By name if accuracies are equal, so that the same cells give the same bytes.
        key=lambda pair: (pair[0].valid, pair[0].metrics["accuracy"] or 0.0, pair[1]),
    )
    cells, names, marks = [], [], []
    for height, (cell, name) in enumerate(named):
        cells.append(cell)
        names.append(name)
        marks += mark_row(cell, height, cell.share())

    titles = titles_of(cells)
    by_title = [rows_of(cell, titles) for cell in cells]
    categories = columns_of(titles)[:MAX_CATEGORIES]
    # A panel for the only category would repeat the first one.
    if len(categories) == 1:
        categories = []

    values = Axis(0, 100, ticks={0: "0", 50: "50", 100: "100"}, edge=3.0)
    rows = row_axis(names)
    panels = [Panel(values, rows, "accuracy, %", marks, has_rows=True)]
    for category in categories:
        marks = []
        for height, (cell, titled) in enumerate(zip(cells, by_title, strict=True)):
            row = titled.get(category)
            if row is not None:
                marks += mark_row(cell, height, row.share)

        panels.append(replace(panels[0], title=wrap_name(category), marks=marks))

    title = f"accuracy and categories with 95 % intervals, {name_datasets(cells)}"
    return Plot(
        title=f"{wrap_title(title, width=86)}\nsquare: control; hollow: INVALID",
        panels=[panels],
        width=6.0 + PANEL * len(categories),
        height=1.7 + height_of(rows),
        widths=[2.6, *[1.0] * len(categories)],
    )


def mark_row(cell: RunSummary, height: int, share: Share) -> list[Mark]:
    """A cell's mark in its row; none if it was not measured."""
    value, low, high = share.percent
    if value is None:
        return []

    is_control = system_of(cell) in CONTROLS
    style = MarkStyle(ORANGE, "s") if is_control else MarkStyle(BLUE, "o")
    return [Mark(value, height, replace(style, is_hollow=not cell.valid), low, high)]
