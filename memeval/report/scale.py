"""Plots of a sweep over haystacks: accuracy by their size and by the evidence's depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.report.differences import labels
from memeval.report.plots import DPI, INK, canvas, has_position, save, wrap_title
from memeval.results import RunSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TOKENS, DEPTH = "dataset.tokens", "depth"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
"""Okabe and Ito's colours, which the colour-blind can tell apart.

The yellow, which is too pale on white, is left out.
"""
MARKS = "osD^vPX*"
PANELS_A_ROW = 3
MOST_PANELS = 12

Lines = Mapping[str, Sequence[RunSummary]]
"""Cells by what they differ in besides the haystack's size, the smallest haystack first."""


def scale_plots(summaries: Sequence[RunSummary], folder: Path) -> list[Path]:
    """Draws what the cells allow, and returns what was drawn.

    `haystack_scale.png` where they differ in the haystack's size, `haystack_depth.png` where their
    questions are grouped by the depth of the evidence.
    """
    drawn = []

    with_size = [cell for cell in summaries if has_position(cell) and size(cell)]
    if len({size(cell) for cell in with_size}) > 1:
        drawn.append(scale_plot(by_line(with_size), folder / "haystack_scale.png"))

    with_depth = [cell for cell in summaries if cell.facets.get(DEPTH)]
    if with_depth:
        drawn.append(depth_plot(with_depth, folder / "haystack_depth.png"))

    return drawn


def size(summary: RunSummary) -> int:
    """Tokens of a cell's haystacks; 0 where its data set has no such setting."""
    value = summary.params.get(TOKENS)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def by_line(cells: Sequence[RunSummary]) -> Lines:
    """The cells as lines over the size, in the order in which their first cells came."""
    without_size = []
    for cell in cells:
        params = {key: value for key, value in cell.params.items() if key != TOKENS}
        without_size.append(replace(cell, params=params))

    lines: dict[str, list[RunSummary]] = {}
    for name, cell in zip(labels(without_size), cells, strict=True):
        lines.setdefault(name, []).append(cell)

    return {name: sorted(line, key=size) for name, line in lines.items()}


def scale_plot(lines: Lines, path: Path) -> Path:
    """Accuracy against the haystack's tokens: one line per system, with 95 % intervals.

    The tokens are on a logarithmic scale.
    """
    figure, axes = canvas(width=7.6, height=4.6)
    axes.set_xscale("log")
    for index, (name, line) in enumerate(lines.items()):
        draw_line(axes, name, line, index)

    sizes = sorted({size(cell) for line in lines.values() for cell in line})
    axes.set_xticks(sizes, [short(tokens) for tokens in sizes])
    axes.minorticks_off()
    axes.set_xlim(sizes[0] / 1.6, sizes[-1] * 1.6)
    axes.set_ylim(-2, 104)
    axes.set_yticks(range(0, 101, 20))
    axes.set_xlabel("haystack, tokens")
    axes.set_ylabel("accuracy, %, with its 95 % interval")
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.8)

    datasets = ", ".join(sorted({cell.dataset for line in lines.values() for cell in line}))
    title = wrap_title(f"accuracy against the size of the haystack, {datasets}", width=90)
    axes.set_title(title, loc="left", fontsize=10)

    # The legend lists the systems as their lines end at the right: the best one first.
    handles, names = axes.get_legend_handles_labels()
    at_largest = [accuracy(line[-1]) for line in lines.values()]
    order = sorted(range(len(lines)), key=lambda index: -at_largest[index])
    axes.legend(
        [handles[index] for index in order],
        [names[index] for index in order],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize=9,
    )

    return save(figure, path)


def draw_line(axes: Axes, name: str, line: Sequence[RunSummary], index: int) -> None:
    """Draws one system's cells; hollow where a cell is invalid."""
    colour = COLOURS[index % len(COLOURS)]
    # The lines are a little apart, so that the intervals of one size can be distinguished.
    shift = 1.035 ** ((index % 7) - 3)
    sizes = [size(cell) * shift for cell in line]
    values = [accuracy(cell) for cell in line]

    below, above = [], []
    for cell, value in zip(line, values, strict=True):
        low, high = cell.metrics.get("accuracy_ci95_low"), cell.metrics.get("accuracy_ci95_high")
        below.append(0.0 if low is None else max(0.0, value - 100 * low))
        above.append(0.0 if high is None else max(0.0, 100 * high - value))

    axes.errorbar(
        sizes,
        values,
        yerr=[below, above],
        fmt="none",
        ecolor=colour,
        alpha=0.45,
        capsize=2,
        linewidth=1,
        zorder=2,
    )

    style = "--" if index >= len(COLOURS) else "-"
    axes.plot(
        sizes,
        values,
        style,
        marker=MARKS[index % len(MARKS)],
        color=colour,
        markersize=5.5,
        linewidth=1.6,
        label=wrap_title(name, 28),
        zorder=3,
    )

    for x, y, cell in zip(sizes, values, line, strict=True):
        if not cell.valid:
            axes.plot(x, y, "o", color=colour, markerfacecolor="white", markersize=6, zorder=4)


def depth_plot(cells: Sequence[RunSummary], path: Path) -> Path:
    """Accuracy as a map of depth by size, one panel per system.

    Where there is only one size, one panel has depth by system.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sizes = sorted({size(cell) for cell in cells})
    lines = by_line(cells) if len(sizes) > 1 else {}
    panels = [(name, across(line, sizes)) for name, line in lines.items()][:MOST_PANELS]
    if not panels:
        names = [wrap_title(name, 14) for name in labels(cells)]
        panels = [("", list(zip(names, cells, strict=True)))]

    depths = sorted({row.category for cell in cells for row in cell.facets[DEPTH]}, key=start)
    wide = min(PANELS_A_ROW, len(panels))
    high = -(-len(panels) // wide)
    columns = max(len(panel) for _, panel in panels)
    figure = Figure(
        figsize=(1.6 + wide * (0.9 + 0.62 * columns), 0.9 + high * (1.0 + 0.36 * len(depths))),
        dpi=DPI,
        layout="constrained",
    )
    FigureCanvasAgg(figure)
    grid = figure.subplots(high, wide, squeeze=False)

    for index, axes in enumerate(grid.flat):
        if index < len(panels):
            draw_heat(axes, *panels[index], depths, labelled=index % wide == 0)
        else:
            axes.set_axis_off()

    datasets = ", ".join(sorted({cell.dataset for cell in cells}))
    left = f" (the first {MOST_PANELS} of {len(lines)})" if len(lines) > MOST_PANELS else ""
    figure.suptitle(
        f"accuracy, %, by depth of the evidence, {datasets}{left}", x=0.01, ha="left", fontsize=10
    )

    return save(figure, path)


def across(line: Sequence[RunSummary], sizes: Sequence[int]) -> list[tuple[str, RunSummary | None]]:
    """A panel's columns: every size, with the cell of the line that has it."""
    by_size = {size(cell): cell for cell in line}
    return [(short(tokens), by_size.get(tokens)) for tokens in sizes]


def draw_heat(
    axes: Axes,
    title: str,
    panel: Sequence[tuple[str, RunSummary | None]],
    depths: Sequence[str],
    labelled: bool,
) -> None:
    """Draws one panel: depths downwards, cells to the right, each with its figure.

    What was not asked stays white.
    """
    columns = [accuracy_by_depth(cell) for _, cell in panel]
    values = [[column.get(depth) for column in columns] for depth in depths]
    shades = [list(map(shade, row)) for row in values]
    axes.imshow(shades, cmap="Blues", vmin=0, vmax=115, aspect="auto")

    for y, row in enumerate(values):
        for x, value in enumerate(row):
            is_dark = value is not None and value > 0.65
            axes.text(
                x,
                y,
                "–" if value is None else f"{100 * value:.0f}",
                ha="center",
                va="center",
                fontsize=9,
                color="white" if is_dark else INK,
            )

    axes.set_xticks(range(len(panel)), [name for name, _ in panel])
    axes.set_yticks(range(len(depths)), depths if labelled else [""] * len(depths))
    if labelled:
        axes.set_ylabel("depth of the evidence", fontsize=9)

    if title:
        axes.set_title(wrap_title(title, 26), fontsize=9, loc="left")
        axes.set_xlabel("haystack, tokens", fontsize=8)

    axes.tick_params(labelsize=8, length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def accuracy_by_depth(cell: RunSummary | None) -> dict[str, float | None]:
    """A cell's accuracy at each depth; empty where there is no cell."""
    if cell is None:
        return {}

    return {row.category: row.accuracy for row in cell.facets.get(DEPTH, ())}


def shade(value: float | None) -> float:
    """What the colour of a figure is made from, in per cent; not a number where it is white."""
    return float("nan") if value is None else 100 * value


def start(depth: str) -> tuple[float, str]:
    """Where a bucket begins: 20 for `20-40%`. What is not a bucket comes last."""
    number = depth.partition("-")[0].rstrip("%")
    is_number = number.replace(".", "", 1).isdigit()

    return (float(number) if is_number else float("inf"), depth)


def accuracy(summary: RunSummary) -> float:
    """In per cent."""
    return 100 * float(summary.metrics["accuracy"] or 0)


def short(tokens: int) -> str:
    """A number of tokens as ticks have it: `500`, `10k`, `2.5M`."""
    for factor, letter in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= factor:
            return f"{tokens / factor:g}{letter}"

    return f"{tokens:,}"
