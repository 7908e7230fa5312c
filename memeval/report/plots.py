"""The plots of one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memeval.metrics.formats import count, percent
from memeval.report.canvas import BLUE, GREY, INK, PALE, canvas, save, wrap_name, wrap_title
from memeval.report.price_plots import has_position, siblings, tokens_plot
from memeval.results import CategoryResult, RunSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDEST = 200.0
"""Inches. Beyond it, a plot of very many categories is crowded, but it can be drawn."""


def write_plots(folder: Path, summary: RunSummary) -> list[Path]:
    """Draws the plots of one run into `plots/`.

    Returns those for which there was something to draw.
    """
    plots = folder / "plots"
    plots.mkdir(exist_ok=True)
    drawn = []

    if any(row.accuracy is not None for row in summary.categories):
        drawn.append(category_plot(summary, plots / "accuracy_by_category.png"))

    if has_position(summary):
        others = list(siblings(folder, summary))
        drawn.append(tokens_plot(summary, others, plots / "accuracy_vs_tokens.png"))

    return drawn


def category_plot(summary: RunSummary, path: Path) -> Path:
    """Bars of accuracy with 95 % intervals.

    The categories that are not in the headline are apart, in grey.
    """
    rows = sorted(summary.categories, key=lambda row: not row.headline)
    inside = sum(row.headline for row in rows)
    figure, axes = canvas(width=min(WIDEST, max(5.0, 1.6 + 1.05 * len(rows))), height=4.0)

    # A gap before the categories that are not in the accuracy.
    xs = [index + (0.5 if index >= inside else 0.0) for index in range(len(rows))]
    for x, row in zip(xs, rows, strict=True):
        draw_bar(axes, x, row)

    axes.set_xticks(xs, [f"{wrap_name(row.name)}\nn = {count(row.n)}" for row in rows])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, xs[-1] + 0.6)
    axes.set_ylim(0, 112)  # above 100 there is room for figures and remarks
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel("accuracy, %")
    axes.grid(axis="y", color=PALE, linewidth=0.8)
    axes.set_title(
        wrap_title(summary.name, width=int(12 * figure.get_figwidth())), loc="left", fontsize=10
    )

    if 0 < inside < len(rows):
        remark = "not in accuracy" if len(rows) == inside + 1 else "these are not in accuracy"
        middle = (xs[inside] + xs[-1]) / 2
        axes.text(middle, 107, remark, ha="center", fontsize=8, color=GREY)

    return save(figure, path)


def draw_bar(axes: Axes, x: float, row: CategoryResult) -> None:
    """Draws one category: the bar, its interval, and the figure above both."""
    if row.accuracy is None:
        axes.text(x, 1.5, "not\nscored", ha="center", fontsize=8, color=GREY)
        return

    value = 100 * row.accuracy
    axes.bar(x, value, width=0.7, color=BLUE if row.headline else GREY, zorder=2)

    top = value
    if row.ci95_low is not None and row.ci95_high is not None:
        top = max(value, 100 * row.ci95_high)
        below, above = max(0.0, value - 100 * row.ci95_low), max(0.0, 100 * row.ci95_high - value)
        axes.errorbar(
            x, value, yerr=[[below], [above]], color=INK, capsize=4, linewidth=1.2, zorder=3
        )

    axes.text(x, top + 1.5, percent(row.accuracy), ha="center", fontsize=9, color=INK)
