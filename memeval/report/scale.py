"""Plots by the depth of the evidence in a haystack: a map of accuracy, and its curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.report.canvas import (
    INK,
    Look,
    add_series_legend,
    clear_frame,
    empty_figure,
    looks_of,
    name_datasets,
    save,
    wrap_title,
)
from memeval.report.curves import TOKENS, by_line, draw_intervals, set_accuracy_axis, short
from memeval.report.differences import labels
from memeval.results import CategoryResult, RunSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEPTH = "depth"
"""The facet that groups questions by where their evidence is."""
PANELS_A_ROW = 3
MOST_PANELS = 12


def depth_plots(summaries: Sequence[RunSummary], folder: Path) -> list[Path]:
    """Draws `haystack_depth.png` and `haystack_depth_curves.png`.

    Nothing where the questions are not grouped by the depth of their evidence.
    """
    cells = [cell for cell in summaries if cell.facets.get(DEPTH)]
    if not cells:
        return []

    return [
        depth_plot(cells, folder / "haystack_depth.png"),
        depth_curves(cells, folder / "haystack_depth_curves.png"),
    ]


def size(summary: RunSummary) -> int:
    """Tokens of a cell's haystacks; 0 where its data set has no such setting."""
    value = summary.params.get(TOKENS)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def depth_plot(cells: Sequence[RunSummary], path: Path) -> Path:
    """Accuracy as a map of depth by size, one panel per system.

    Where there is only one size, one panel has depth by system.
    """
    sizes = sorted({size(cell) for cell in cells})
    lines = by_line(cells, TOKENS) if len(sizes) > 1 else {}
    panels = [(name, across(line, sizes)) for name, line in lines.items()][:MOST_PANELS]
    if not panels:
        names = [wrap_title(name, 14) for name in labels(cells)]
        panels = [("", list(zip(names, cells, strict=True)))]

    depths = depths_of(cells)
    wide = min(PANELS_A_ROW, len(panels))
    high = -(-len(panels) // wide)
    columns = max(len(panel) for _, panel in panels)
    figure = empty_figure(
        1.6 + wide * (0.9 + 0.62 * columns), 0.9 + high * (1.0 + 0.36 * len(depths))
    )
    grid = figure.subplots(high, wide, squeeze=False)

    for index, axes in enumerate(grid.flat):
        if index < len(panels):
            draw_heat(axes, *panels[index], depths, labelled=index % wide == 0)
        else:
            axes.set_axis_off()

    datasets = name_datasets([cell.dataset for cell in cells])
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
    values = [values_at(depth, columns) for depth in depths]
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


def values_at(depth: str, columns: Sequence[Mapping[str, float | None]]) -> list[float | None]:
    """The accuracy of each column at one depth."""
    return [column.get(depth) for column in columns]


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


def depths_of(cells: Sequence[RunSummary]) -> list[str]:
    """The groups of depth, from the start of the haystack to its end."""
    return sorted({row.category for cell in cells for row in cell.facets[DEPTH]}, key=start)


def depth_curves(cells: Sequence[RunSummary], path: Path) -> Path:
    """Accuracy against depth: a panel per size of the haystack, a line per system, intervals."""
    sizes = sorted({size(cell) for cell in cells})
    if len(sizes) > 1:
        lines = by_line(cells, TOKENS)
    else:
        lines = {name: [cell] for name, cell in zip(labels(cells), cells, strict=True)}

    # Of many sizes the largest: there depth matters most.
    sizes = sizes[-PANELS_A_ROW:]
    figure = empty_figure(2.6 + 3.0 * len(sizes), 4.2)
    looks = looks_of(lines)
    add_series_legend(figure, looks)
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    depths = depths_of(cells)
    highest = []

    for axes, tokens in zip(panels, sizes, strict=True):
        clear_frame(axes)
        for number, (name, line) in enumerate(lines.items()):
            # Beside each other, so that no interval covers another.
            aside = 0.3 * (number / len(lines) - 0.5)
            for cell in line:
                if size(cell) == tokens:
                    highest += draw_depths(axes, cell, depths, looks[name], aside)

        axes.set_xticks(range(len(depths)), [depth.replace("-", "–") for depth in depths])
        axes.tick_params(labelsize=8)
        axes.set_xlabel("depth of the evidence", fontsize=9)
        if tokens:
            axes.set_title(f"{short(tokens)} tokens", loc="left", fontsize=9)

    for axes in panels:
        set_accuracy_axis(axes, highest)
        axes.label_outer()

    datasets = name_datasets([cell.dataset for cell in cells])
    figure.suptitle(
        f"accuracy by depth of the evidence, {datasets}", x=0.01, ha="left", fontsize=10
    )

    return save(figure, path)


def draw_depths(
    axes: Axes, cell: RunSummary, depths: Sequence[str], look: Look, aside: float
) -> list[float]:
    """Draws a cell's line over the depths, and returns the upper ends of its intervals."""
    rows = [row for row in cell.facets[DEPTH] if row.accuracy is not None]
    rows.sort(key=lambda row: start(row.category))
    xs = [depths.index(row.category) + aside for row in rows]
    values = [100 * (row.accuracy or 0.0) for row in rows]
    ends = [interval_of(row) for row in rows]

    draw_intervals(axes, xs, values, ends, look)
    axes.plot(
        xs, values, look.line, marker=look.mark, color=look.colour, markersize=5.5, linewidth=1.5
    )
    return [high for _, high in ends]


def interval_of(row: CategoryResult) -> tuple[float, float]:
    """Ends of a row's interval, in per cent; its accuracy where there is none."""
    value = 100 * (row.accuracy or 0.0)
    if row.ci95_low is None or row.ci95_high is None:
        return value, value

    return 100 * row.ci95_low, 100 * row.ci95_high
