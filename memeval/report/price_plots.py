"""Accuracy against what it costs, tokens of context or dollars: a point per cell, and the frontier.

A system has a form and a colour of its own, so that no two systems differ only in colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.report.canvas import (
    GREY,
    ORANGE,
    Look,
    add_series_legend,
    canvas,
    looks_of,
    name_datasets,
    save,
    wrap_title,
)
from memeval.report.differences import labels, system_of
from memeval.report.frontier import draw_frontier, is_fair
from memeval.report.labelling import name_points
from memeval.results import RUN_FILE, RunSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OTHER, OWN = Look(GREY, "o"), Look(ORANGE, "D")
"""In the plot of one run: other runs, and the run itself."""
LEGEND = 1.5
"""Inches of a legend beside the plot."""


@dataclass(frozen=True)
class Price:
    """What an accuracy is plotted against."""

    metric: str
    title: str
    axis: str
    unit: str
    """After a figure, in the words on the frontier."""

    def of(self, summary: RunSummary) -> float | None:
        """What the run took."""
        return summary.metrics.get(self.metric)

    def tick(self, value: float) -> str:
        """A value on the axis."""
        return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


CONTEXT = Price("context_tokens", "context", "context, tokens per question", "tokens")
COST = Price(
    "cost_usd_uncached/total", "cost", "cost of the run without the cache, US dollars", "dollars"
)


def tokens_plot(summary: RunSummary, others: Sequence[RunSummary], path: Path) -> Path:
    """Accuracy against tokens of context: this run among the others of its protocol."""
    figure, axes = canvas(width=6.4, height=4.2)
    cells = [*others, summary]
    for other in others:
        draw_point(axes, other, CONTEXT, OTHER)

    draw_point(axes, summary, CONTEXT, OWN)
    set_price_axes(axes, cells, CONTEXT)

    among = ""
    if others:
        plural = "" if len(others) == 1 else "s"
        among = f"(diamond) among {len(others)} other run{plural} of its protocol "

    title = wrap_title(f"{summary.name} {among}on {summary.dataset}", width=76)
    axes.set_title(title, loc="left", fontsize=10)

    names = labels(cells, limit=3) if others else ["this run"]
    name_cells(axes, cells, names, CONTEXT, first=len(others))

    return save(figure, path)


def sweep_plot(summaries: Sequence[RunSummary], path: Path, price: Price = CONTEXT) -> Path:
    """Accuracy against a price: a point per cell, its name beside it where there is room.

    Cells that lack either figure are left out.
    """
    cells = [summary for summary in summaries if has_position(summary, price)]
    looks = looks_of(system_of(cell) for cell in cells)
    has_legend = len(looks) > 1
    figure, axes = canvas(width=7.2 + LEGEND * has_legend, height=4.8)
    if has_legend:
        add_series_legend(figure, looks)

    for cell in cells:
        draw_point(axes, cell, price, looks[system_of(cell)])

    set_price_axes(axes, cells, price)
    fair = [position(cell, price) for cell in cells if is_fair(cell)]
    area = draw_frontier(axes, fair, price.unit)

    datasets = name_datasets([cell.dataset for cell in cells])
    title = wrap_title(f"accuracy against {price.title}, {datasets}", width=86)
    if not all(cell.valid for cell in cells):
        title += "; hollow: INVALID"

    title += f"\n{area}" if area else ""
    axes.set_title(title, loc="left", fontsize=10)
    name_cells(axes, cells, labels(cells), price)

    return save(figure, path)


def name_cells(
    axes: Axes,
    cells: Sequence[RunSummary],
    names: Sequence[str],
    price: Price,
    first: int | None = None,
) -> None:
    """Writes the names of the cells beside their points."""
    points = [(*position(cell, price), name) for cell, name in zip(cells, names, strict=True)]
    name_points(axes, points, spans(cells), first=first)


def draw_point(axes: Axes, cell: RunSummary, price: Price, look: Look) -> None:
    """Draws one cell with its interval; hollow where the cell is invalid."""
    x, y = position(cell, price)
    low, high = spans([cell])[0]

    if high > low:
        axes.errorbar(
            x,
            y,
            yerr=[[max(0.0, y - low)], [max(0.0, high - y)]],
            color=look.colour,
            capsize=3,
            linewidth=1,
            zorder=2,
        )

    axes.plot(
        x,
        y,
        look.mark,
        color=look.colour,
        markerfacecolor=look.colour if cell.valid else "white",
        markersize=6.5,
        zorder=3,
    )


def set_price_axes(axes: Axes, cells: Sequence[RunSummary], price: Price) -> None:
    """Sets scales and grid.

    Prices are on a logarithmic scale, zero included, where they span more than a factor of 20.
    """
    from matplotlib.ticker import FuncFormatter

    prices = [position(cell, price)[0] for cell in cells]
    positive = [paid for paid in prices if paid > 0]

    if positive and max(positive) > 20 * min(positive):
        least = 10.0 ** int(f"{min(positive):e}".split("e")[1])
        # symlog, since a logarithmic scale has no place for a cell that costs nothing.
        axes.set_xscale("symlog", linthresh=least, linscale=0.6)
        zero = [0] if min(prices) == 0 else []
        steps = (least * 10**power * step for power in range(7) for step in (1, 3))
        axes.set_xticks([*zero, *(step for step in steps if step <= 3 * max(positive))])
        axes.minorticks_off()
        axes.set_xlim(-0.15 * least if zero else 0.7 * min(positive), 3 * max(positive))
    else:
        axes.set_xlim(0, 1.3 * max(positive, default=1.0))

    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: price.tick(value)))
    axes.set_ylim(0, min(105.0, max([10.0, *(high for _, high in spans(cells))]) * 1.15))
    axes.set_xlabel(price.axis)
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


def has_position(summary: RunSummary, price: Price = CONTEXT) -> bool:
    """Whether the run has both figures that the plot needs."""
    return summary.metrics.get("accuracy") is not None and price.of(summary) is not None


def position(summary: RunSummary, price: Price = CONTEXT) -> tuple[float, float]:
    """The price of a run, and its accuracy in per cent."""
    return float(price.of(summary) or 0), 100 * float(summary.metrics["accuracy"] or 0)


def spans(summaries: Sequence[RunSummary]) -> list[tuple[float, float]]:
    """Ends of the intervals of accuracy, in per cent; the point itself where there is none."""
    ends = []
    for cell in summaries:
        low, high = cell.metrics.get("accuracy_ci95_low"), cell.metrics.get("accuracy_ci95_high")
        y = position(cell)[1]
        ends.append((y, y) if low is None or high is None else (100 * low, 100 * high))

    return ends
