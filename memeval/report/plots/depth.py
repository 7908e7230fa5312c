"""Plots by the depth of the evidence in a haystack: a map of accuracy, and its curves."""

from collections.abc import Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from memeval.report.differences import labels
from memeval.report.plots.curves import TOKENS, by_line, short_number, sideways_shifts, value_of
from memeval.report.plots.model import (
    Mark,
    MarkStyle,
    MatrixCell,
    Panel,
    Plot,
    accuracy_axis,
    name_datasets,
    named_axis,
    styles_of,
    wrap_title,
)
from memeval.results import RunSummary
from memeval.text.shown import natural_order

DEPTH = "depth"
"""The facet that groups questions by the position of their evidence."""
PANELS_A_ROW = 3
MAX_PANELS = 12

Column = tuple[str, Mapping[str, float | None]]
"""Name of a column of the map, and its accuracies by depth."""


def depth_plots(summaries: Sequence[RunSummary], suffix: str) -> dict[str, Plot]:
    """The map and the curves, by names that end in `suffix`.

    Empty if questions are not grouped by the depth of their evidence.
    """
    cells = [cell for cell in summaries if cell.facets.get(DEPTH)]
    if not cells:
        return {}

    return {
        f"haystack_depth{suffix}": depth_map(cells),
        f"haystack_depth_curves{suffix}": depth_curves(cells),
    }


def depth_map(cells: Sequence[RunSummary]) -> Plot:
    """Accuracy as a map of depth by size, one panel per system.

    If there is only one size, one panel has depth by system.
    """
    sizes = sizes_of(cells)
    depths = depths_of(cells)
    title = f"accuracy, %, by depth of the evidence, {name_datasets(cells)}"
    panels = []
    if len(sizes) > 1:
        lines = by_line(cells, TOKENS)
        if len(lines) > MAX_PANELS:
            title += f" (the first {MAX_PANELS} of {len(lines)})"

        for name, line in islice(lines.items(), MAX_PANELS):
            panel = map_panel(map_columns(line, sizes), depths, "haystack, tokens")
            panels.append(replace(panel, title=wrap_title(name, 26)))
    else:
        names = [wrap_title(name, 14) for name in labels(cells)]
        columns = list(zip(names, map(accuracy_by_depth, cells), strict=True))
        panels.append(map_panel(columns, depths))

    rows = [panels[first : first + PANELS_A_ROW] for first in range(0, len(panels), PANELS_A_ROW)]
    return Plot(
        title=title,
        panels=rows,
        width=1.6 + len(rows[0]) * (0.9 + 0.62 * len(panels[0].across.ticks)),
        height=0.9 + len(rows) * (1.0 + 0.36 * len(depths)),
    )


def map_columns(line: Sequence[RunSummary], sizes: Sequence[float]) -> list[Column]:
    """A panel's columns: every size, with the accuracies of the line's cell of that size."""
    by_size = {value_of(cell, TOKENS): accuracy_by_depth(cell) for cell in line}
    return [(short_number(tokens), by_size.get(tokens, {})) for tokens in sizes]


def map_panel(columns: Sequence[Column], depths: Sequence[str], title: str = "") -> Panel:
    """Depths downwards, columns to the right, each cell with its figure, or a dash without one."""
    cells = []
    for x, (_, accuracies) in enumerate(columns):
        for y, depth in enumerate(reversed(depths)):
            value, text = accuracies.get(depth), "–"
            if value is not None:
                text = f"{100 * value:.0f}"

            cells.append(MatrixCell(x, y, text, shade=value or 0.0))

    return Panel(
        across=named_axis([name for name, _ in columns], title),
        up=named_axis(depths[::-1], "depth of the evidence"),
        cells=cells,
    )


def accuracy_by_depth(cell: RunSummary) -> dict[str, float | None]:
    return {row.category: row.accuracy for row in cell.facets[DEPTH]}


def sizes_of(cells: Sequence[RunSummary]) -> list[float]:
    """The sizes of the haystacks, the smallest first."""
    return sorted({value_of(cell, TOKENS) for cell in cells})


def depths_of(cells: Sequence[RunSummary]) -> list[str]:
    """The groups of depth, from the start of the haystack to its end."""
    return sorted(set().union(*map(accuracy_by_depth, cells)), key=natural_order)


def depth_curves(cells: Sequence[RunSummary]) -> Plot:
    """Accuracy against depth with intervals: a panel per haystack size, a line per system."""
    sizes = sizes_of(cells)
    if len(sizes) > 1:
        lines = by_line(cells, TOKENS)
    else:
        lines = {name: [cell] for name, cell in zip(labels(cells), cells, strict=True)}

    depths = depths_of(cells)
    names = [depth.replace("-", "–") for depth in depths]
    axis = named_axis(names, "depth of the evidence", room=0.4)
    # Side by side, so that no interval covers another.
    sides = sideways_shifts(len(lines), [axis.at(0), axis.at(1)])
    styles = styles_of(lines)

    # Only the largest sizes: there depth matters most.
    by_size: dict[float, list[list[Mark]]] = {}
    for tokens in sizes[-PANELS_A_ROW:]:
        by_size[tokens] = []

    drawn: list[Mark] = []
    for (name, line), aside in zip(lines.items(), sides, strict=True):
        for cell in line:
            marks = depth_marks(cell, depths, styles[name], aside)
            if marks and value_of(cell, TOKENS) in by_size:
                by_size[value_of(cell, TOKENS)].append(marks)
                drawn += marks

    up = accuracy_axis(drawn)
    panels = []
    for tokens, lines_of_size in by_size.items():
        title = ""
        if tokens:
            title = f"{short_number(tokens)} tokens"

        panels.append(Panel(axis, up, title, lines=lines_of_size))

    return Plot(
        title=f"accuracy by depth of the evidence, {name_datasets(cells)}",
        panels=[panels],
        width=2.6 + 3.0 * len(panels),
        height=4.2,
        legend=styles,
    )


def depth_marks(
    cell: RunSummary, depths: Sequence[str], style: MarkStyle, aside: float
) -> list[Mark]:
    """A cell's accuracies over the depths."""
    marks = []
    for row in sorted(cell.facets[DEPTH], key=lambda row: natural_order(row.category)):
        value, low, high = row.share.percent
        if value is not None:
            x = depths.index(row.category)
            marks.append(Mark(x, value, style, low, high, aside=aside))

    return marks
