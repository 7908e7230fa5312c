"""The plots of a run and of a sweep.

Figures are drawn by object, without pyplot's global state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.report.differences import labels
from memeval.report.figures import count, percent
from memeval.report.frontier import draw_frontier
from memeval.report.labelling import name_points
from memeval.results import RUN_FILE, CategoryResult, RunSummary
from memeval.shown import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#8C8C8C", "#333333"
"""Okabe and Ito's colours, which the colour-blind tell apart, and two neutral ones."""

DPI = 150
WIDEST = 200.0
"""Inches. Beyond it, a plot of very many categories is crowded, but it can be drawn."""
LONGEST_NAME = 120
"""Characters of a name in a plot."""


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

    places = [index + (0.5 if index >= inside else 0.0) for index in range(len(rows))]
    for place, row in zip(places, rows, strict=True):
        draw_bar(axes, place, row)

    axes.set_xticks(places, [f"{wrap_name(row.name)}\nn = {count(row.n)}" for row in rows])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, places[-1] + 0.6)
    axes.set_ylim(0, 112)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel("accuracy, %")
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.8)
    axes.set_title(
        wrap_title(summary.name, width=int(12 * figure.get_figwidth())), loc="left", fontsize=10
    )

    if 0 < inside < len(rows):
        remark = "not in accuracy" if len(rows) == inside + 1 else "these are not in accuracy"
        middle = (places[inside] + places[-1]) / 2
        axes.text(middle, 107, remark, ha="center", fontsize=8, color=GREY)

    return save(figure, path)


def draw_bar(axes: Axes, place: float, row: CategoryResult) -> None:
    """Draws one category: the bar, its interval, and the figure above both."""
    if row.accuracy is None:
        axes.text(place, 1.5, "not\nscored", ha="center", fontsize=8, color=GREY)
        return

    value = 100 * row.accuracy
    axes.bar(place, value, width=0.7, color=BLUE if row.headline else GREY, zorder=2)

    top = value
    if row.ci95_low is not None and row.ci95_high is not None:
        top = max(value, 100 * row.ci95_high)
        below, above = max(0.0, value - 100 * row.ci95_low), max(0.0, 100 * row.ci95_high - value)
        axes.errorbar(
            place, value, yerr=[[below], [above]], color=INK, capsize=4, linewidth=1.2, zorder=3
        )

    axes.text(place, top + 1.5, percent(row.accuracy), ha="center", fontsize=9, color=INK)


def tokens_plot(summary: RunSummary, others: Sequence[RunSummary], path: Path) -> Path:
    """Accuracy against tokens of context per question.

    This run among the others of its data set and protocol.
    """
    figure, axes = canvas(width=6.4, height=4.2)
    cells = [*others, summary]
    for other in others:
        draw_point(axes, other, GREY)

    draw_point(axes, summary, ORANGE)
    set_context_axes(axes, cells)

    among = ""
    if others:
        plural = "" if len(others) == 1 else "s"
        among = f"among {len(others)} other run{plural} of its protocol "

    title = wrap_title(f"{summary.name} {among}on {summary.dataset}", width=76)
    axes.set_title(title, loc="left", fontsize=10)

    names = labels(cells, limit=3) if others else ["this run"]
    name_points(
        axes,
        [(*position(cell), name) for cell, name in zip(cells, names, strict=True)],
        spans(cells),
        first=len(others),
    )

    return save(figure, path)


def sweep_plot(summaries: Sequence[RunSummary], path: Path) -> None:
    """Accuracy against tokens of context per question, one labelled point per cell.

    Cells that lack either figure are left out.
    """
    cells = [summary for summary in summaries if has_position(summary)]
    figure, axes = canvas(width=7.2, height=4.8)
    for cell in cells:
        draw_point(axes, cell, BLUE if cell.valid else GREY)

    set_context_axes(axes, cells)
    # The oracle is handed the evidence, and a cell that is not valid proves nothing: neither says
    # what can be had for its price.
    fair = [cell for cell in cells if cell.valid and cell.params.get("system") != "oracle"]
    area = draw_frontier(axes, [position(cell) for cell in fair])

    datasets = ", ".join(sorted({cell.dataset for cell in cells})) or "nothing measured"
    title = wrap_title(f"accuracy against context, {datasets}", width=86)
    title += f"\n{area}" if area else ""
    axes.set_title(title, loc="left", fontsize=10)

    name_points(
        axes,
        [(*position(cell), name) for cell, name in zip(cells, labels(cells), strict=True)],
        spans(cells),
    )
    save(figure, path)


def draw_point(axes: Axes, cell: RunSummary, colour: str) -> None:
    """Draws one cell with its interval; hollow where the cell is invalid."""
    x, y = position(cell)
    low, high = spans([cell])[0]

    if high > low:
        axes.errorbar(
            x,
            y,
            yerr=[[max(0.0, y - low)], [max(0.0, high - y)]],
            color=colour,
            capsize=3,
            linewidth=1,
            zorder=2,
        )

    axes.plot(
        x,
        y,
        "o",
        color=colour,
        markerfacecolor=colour if cell.valid else "white",
        markersize=6,
        zorder=3,
    )


def set_context_axes(axes: Axes, cells: Sequence[RunSummary]) -> None:
    """Sets scales and grid.

    Tokens are on a logarithmic scale, zero included, where they span more than a factor of 20.
    """
    from matplotlib.ticker import FuncFormatter

    contexts = [position(cell)[0] for cell in cells]
    positive = [context for context in contexts if context > 0]

    if positive and max(positive) > 20 * min(positive):
        least = 10 ** int(f"{min(positive):e}".split("e")[1])
        axes.set_xscale("symlog", linthresh=least, linscale=0.6)
        zero = [0] if min(contexts) == 0 else []
        steps = (least * 10**power * step for power in range(7) for step in (1, 3))
        axes.set_xticks([*zero, *(step for step in steps if step <= 3 * max(positive))])
        axes.minorticks_off()
        axes.set_xlim(-0.15 * least if zero else 0.7 * min(positive), 3 * max(positive))
    else:
        axes.set_xlim(0, 1.3 * max(positive, default=1.0))

    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_ylim(0, min(105.0, max([10.0, *(high for _, high in spans(cells))]) * 1.15))
    axes.set_xlabel("context, tokens per question")
    axes.set_ylabel("accuracy, %, with its 95 % interval")
    axes.grid(color="#EDEDED", linewidth=0.8)


def siblings(folder: Path, summary: RunSummary) -> Iterator[RunSummary]:
    """Runs beside this one that can be compared with it; unreadable folders are left out."""
    for path in sorted(folder.parent.glob(f"*/{RUN_FILE}")):
        if path.parent == folder:
            continue

        try:
            other = RunSummary.read(path.parent)
        except (OSError, ValueError, TypeError, KeyError):
            continue

        is_comparable = other.dataset == summary.dataset and other.tags.get(
            "protocol"
        ) == summary.tags.get("protocol")
        if is_comparable and has_position(other):
            yield other


def has_position(summary: RunSummary) -> bool:
    """Whether the run has both figures that the plot needs."""
    return (
        summary.metrics.get("accuracy") is not None
        and summary.metrics.get("context_tokens") is not None
    )


def position(summary: RunSummary) -> tuple[float, float]:
    """Context tokens per question, and accuracy in per cent."""
    tokens = float(summary.metrics["context_tokens"] or 0)
    accuracy = 100 * float(summary.metrics["accuracy"] or 0)

    return tokens, accuracy


def spans(summaries: Sequence[RunSummary]) -> list[tuple[float, float]]:
    """Ends of the intervals of accuracy, in per cent; the point itself where there is none."""
    ends = []
    for cell in summaries:
        low, high = cell.metrics.get("accuracy_ci95_low"), cell.metrics.get("accuracy_ci95_high")
        y = position(cell)[1]
        ends.append((y, y) if low is None or high is None else (100 * low, 100 * high))

    return ends


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure with one plain pair of axes."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    matplotlib.rcParams["text.parse_math"] = False  # dollars in names are no formulas
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)

    axes.tick_params(labelsize=9)

    return figure, axes


def save(figure: Figure, path: Path) -> Path:
    """Writes the picture; the same figures give the same bytes."""
    figure.savefig(path, metadata={"Software": None})
    return path


def wrap_name(name: str) -> str:
    """A category's name on short lines: `single-session-user` on three."""
    return "\n".join(re.split(r"[-_ ]", one_line(name, LONGEST_NAME)))


def wrap_title(text: str, width: int) -> str:
    """A title on lines of at most `width` characters."""
    import textwrap

    return "\n".join(textwrap.wrap(one_line(text, 2 * LONGEST_NAME), width))


def warm_up() -> None:
    """Loads matplotlib and its fonts, so that the first plot doesn't wait for them."""
    import io

    figure, _ = canvas(1, 1)
    figure.savefig(io.BytesIO())
