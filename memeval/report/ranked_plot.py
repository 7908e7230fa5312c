"""The cells of a sweep by rank: accuracy, and beside it each category, in panels with one row per
cell. It stays legible where a plot of points has no room for names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.report.canvas import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE,
    canvas,
    name_datasets,
    save,
    wrap_name,
    wrap_title,
)
from memeval.report.categories import columns_of, rows_of, titles_of
from memeval.report.differences import labels, system_of
from memeval.results import RunSummary
from memeval.shown import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW, PANEL = 0.27, 1.15
"""Inches of a row, and of the panel of a category."""
MOST_CATEGORIES = 8
"""Panels beside that of the accuracy; further categories are in the tables."""
NAME = 46


def ranked_plot(summaries: Sequence[RunSummary], path: Path) -> Path:
    """Cells from the highest accuracy down, with 95 % intervals, invalid ones last.

    Controls and invalid cells are marked by form and fill.
    """
    measured = [cell for cell in summaries if cell.metrics.get("accuracy") is not None]
    named = sorted(
        zip(measured, labels(measured), strict=True),
        # By name where accuracies are equal, so that the same cells give the same bytes.
        key=lambda pair: (pair[0].valid, pair[0].metrics["accuracy"] or 0.0, pair[1]),
    )
    cells = [cell for cell, _ in named]
    titles = titles_of(cells)
    by_title = [rows_of(cell, titles) for cell in cells]
    # A panel for the only category would repeat the first one.
    categories = columns_of(titles)[:MOST_CATEGORIES] if len(columns_of(titles)) > 1 else []
    figure, axes = canvas(
        width=6.0 + PANEL * len(categories), height=1.7 + ROW * max(len(cells), 2)
    )
    # The axes of `canvas` make room for panels, which share their rows.
    grid = axes.get_subplotspec()
    assert grid is not None
    axes.remove()

    split = grid.subgridspec(1, 1 + len(categories), width_ratios=[2.6, *[1.0] * len(categories)])
    first = figure.add_subplot(split[0])
    for height, cell in enumerate(cells):
        bounds = cell.metrics.get("accuracy_ci95_low"), cell.metrics.get("accuracy_ci95_high")
        draw_row(first, height, cell, cell.metrics["accuracy"], bounds)

    first.set_yticks(range(len(cells)), [one_line(name, NAME) for _, name in named])
    set_panel(first, "accuracy, %", len(cells))
    for number, category in enumerate(categories, start=1):
        panel = figure.add_subplot(split[number], sharey=first)
        for height, cell in enumerate(cells):
            row = by_title[height].get(category)
            if row is not None:
                draw_row(panel, height, cell, row.accuracy, (row.ci95_low, row.ci95_high))

        set_panel(panel, wrap_name(category), len(cells))
        panel.tick_params(axis="y", labelleft=False)

    datasets = name_datasets([cell.dataset for cell in cells])
    title = f"accuracy and categories with 95 % intervals, {datasets}"
    figure.suptitle(
        f"{wrap_title(title, width=86)}\nsquare: control; hollow: INVALID, its coverage is too low",
        x=0.01,
        ha="left",
        fontsize=10,
    )
    return save(figure, path)


def draw_row(
    axes: Axes,
    height: int,
    cell: RunSummary,
    value: float | None,
    bounds: tuple[float | None, float | None],
) -> None:
    """Draws a cell's mark and interval; nothing where it was not measured."""
    if value is None:
        return

    low, high = bounds
    if low is not None and high is not None:
        axes.plot([100 * low, 100 * high], [height, height], color=INK, linewidth=1.3, zorder=2)

    is_control = system_of(cell) in ("oracle", "no_memory", "random_k", "constant")
    colour = ORANGE if is_control else BLUE
    axes.plot(
        100 * value,
        height,
        "s" if is_control else "o",
        color=colour,
        markerfacecolor=colour if cell.valid else "white",
        markersize=5.5,
        zorder=3,
    )


def set_panel(axes: Axes, title: str, count: int) -> None:
    """Scale, grid and title of a panel."""
    axes.set_title(title, fontsize=9)
    axes.set_xlim(-3, 103)
    axes.set_xticks([0, 50, 100])
    axes.set_ylim(-0.7, count - 0.3)
    axes.tick_params(axis="y", length=0, labelsize=10)
    axes.tick_params(axis="x", labelsize=9)
    axes.grid(axis="x", color=PALE, linewidth=0.8)
    axes.hlines(range(count), 0, 1, transform=axes.get_yaxis_transform(), color=GREY, alpha=0.15)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
