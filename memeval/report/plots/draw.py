"""Draws plots into files with matplotlib, by object, without pyplot's global state."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from memeval.report.plots.labelling import fix_layout, name_points
from memeval.report.plots.model import (
    INK,
    Axis,
    Bar,
    Cell,
    Look,
    Mark,
    Panel,
    Plot,
    named_axis,
    wrap_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALE = "#E9E9E9"
"""Of grid lines."""
DPI = 150


def draw_all(plots: Mapping[str, Plot], folder: Path) -> list[Path]:
    """Writes plots under their names, see `draw`. Returns the paths of the PNGs."""
    return [draw(plot, folder / f"{name}.png") for name, plot in plots.items()]


def draw(plot: Plot, path: Path) -> Path:
    """Writes a plot as PNG and, beside it, as SVG; the same plot gives the same bytes.

    Returns the path of the PNG.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure = draw_figure(plot)
    # `Figure.savefig` would draw a figure twice, and lay it out, for each of the two files.
    fix_layout(figure)
    png = path.with_suffix(".png")
    # Matplotlib's version is left out: it would change the bytes with each release.
    agg = FigureCanvasAgg(figure)
    agg.print_png(  # type: ignore[no-untyped-call]
        # A level of 6, the default, takes three times as long for files a tenth or a fifth smaller.
        png,
        metadata={"Software": None},
        pil_kwargs={"compress_level": 2},
    )
    svg = FigureCanvasSVG(figure)
    # Without the salt, the ids within an SVG are drawn at random.
    with matplotlib.rc_context({"svg.hashsalt": "memeval"}):
        svg.print_svg(  # type: ignore[no-untyped-call]
            path.with_suffix(".svg"), metadata={"Date": None, "Creator": None}
        )

    return png


def draw_figure(plot: Plot, kind: type[Figure] | None = None) -> Figure:
    """A plot as a figure of matplotlib, of the class `kind` if it is given."""
    figure = empty_figure(plot.width, plot.height, kind)
    figure.suptitle(plot.title, x=0.01, ha="left", fontsize=10)
    if plot.legend:
        add_legend(figure, plot.legend, below=plot.has_legend_below)

    wide = max(map(len, plot.panels))
    grid = figure.subplots(len(plot.panels), wide, squeeze=False, width_ratios=plot.widths)
    for row, panels in zip(grid, plot.panels, strict=True):
        for axes in row[len(panels) :]:
            axes.set_axis_off()

        for axes, panel in zip(row, panels, strict=False):
            # Panels in one row share the axis upwards.
            draw_panel(axes, panel, is_first=axes is row[0])

    # Names come last: they find their places once the layout is done.
    for axes, panel in zip(grid.flat, chain.from_iterable(plot.panels), strict=False):
        if panel.has_names:
            add_names(axes, panel)

    return figure


def inline_figure(plot: Plot) -> Figure:
    """A plot as a figure that a notebook shows although pyplot never saw it."""
    from matplotlib.figure import Figure

    class InlineFigure(Figure):
        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png")
            return file.getvalue()

    return draw_figure(plot, InlineFigure)


def empty_figure(width: float, height: float, kind: type[Figure] | None = None) -> Figure:
    """A figure of this size in inches, with automatic room for its names."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    matplotlib.rcParams["text.parse_math"] = False  # dollars in names are not formulas
    # Not pyplot: its figures are global, and stay in memory until they are closed.
    made = kind or Figure
    figure = made(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)

    return figure


def add_legend(figure: Figure, legend: dict[str, Look], *, below: bool) -> None:
    """Names the looks, to the right of the plot or below it, before the layout is done."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", label=wrap_title(name, 60 if below else 28), **style(look))
        for name, look in legend.items()
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center" if below else "outside right upper",
        ncols=len(handles) if below else 1,
        frameon=False,
        fontsize=9,
    )


def style(look: Look) -> dict[str, Any]:
    """How matplotlib draws a mark."""
    edge = look.edge or look.colour
    return {
        "marker": look.mark,
        "color": look.colour,
        "markersize": 11.0 if look.mark == "|" else 6.0,
        "markeredgecolor": edge,
        "markeredgewidth": 1.8 if look.mark == "|" else 1.0,
        "markerfacecolor": "white" if look.is_hollow else look.colour,
    }


def draw_panel(axes: Axes, panel: Panel, *, is_first: bool) -> None:
    """Draws one panel between a pair of axes that go from 0 to 100."""
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    axes.set_axisbelow(True)
    axes.set_title(panel.title, fontsize=9, loc="center" if panel.has_rows else "left")
    set_ticks(axes, panel)
    axes.set_xlabel(panel.across.title, fontsize=9)
    if is_first:
        axes.set_ylabel(panel.up.title, fontsize=9)
    else:
        axes.tick_params(axis="y", labelleft=False)

    for name, side in axes.spines.items():
        is_axis = name in ("left", "bottom")
        side.set_visible(is_axis and not panel.cells)

    draw_contents(axes, panel)


def set_ticks(axes: Axes, panel: Panel) -> None:
    """Marks the axes, and draws the grid."""
    axes.tick_params(labelsize=9)
    for axis, drawn in ((panel.across, axes.xaxis), (panel.up, axes.yaxis)):
        places = [axis.at(tick.value) for tick in axis.ticks]
        drawn.set_ticks(places, [tick.text for tick in axis.ticks])
        if axis.has_grid:
            drawn.grid(color=PALE, linewidth=0.8)

    if panel.is_plain:
        axes.tick_params(axis="y" if panel.has_rows else "both", length=0)

    if panel.has_rows and panel.across.low < 0 < panel.across.high:
        axes.axvline(panel.across.at(0), color=INK, linewidth=0.9, zorder=1)


def draw_contents(axes: Axes, panel: Panel) -> None:
    """Draws what is between the axes."""
    across, up = panel.across, panel.up
    if panel.steps:
        xs = [across.at(x) for x, _ in panel.steps]
        ys = [up.at(y) for _, y in panel.steps]
        dashes = (0, (5, 2))
        axes.plot(
            xs, ys, drawstyle="steps-post", color=INK, linewidth=1.1, linestyle=dashes, zorder=1
        )

    for bar in panel.bars:
        draw_bar(axes, bar, across, up)

    for cell in panel.cells:
        draw_cell(axes, cell, across, up)

    for line in panel.lines:
        look = line[0].look
        axes.plot(
            [across.at(mark.x) + mark.aside for mark in line],
            [up.at(mark.y) for mark in line],
            look.line,
            color=look.colour,
            linewidth=1.6,
            zorder=3,
        )

    draw_marks(axes, panel)

    for words in panel.words:
        place = across.at(words.x), up.at(words.y)
        axes.text(*place, words.text, ha="center", fontsize=8, color=words.colour)

    for tick, note in zip(up.ticks, panel.row_notes, strict=False):
        axes.text(102, up.at(tick.value), note, va="center", fontsize=9, color=INK)


def draw_marks(axes: Axes, panel: Panel) -> None:
    """Draws the marks and their intervals, all of one look at once: each call takes its time."""
    by_look: dict[Look, list[Mark]] = {}
    for mark in panel.all_marks:
        by_look.setdefault(mark.look, []).append(mark)

    for look, marks in by_look.items():
        xs = [panel.across.at(mark.x) + mark.aside for mark in marks]
        ys = [panel.up.at(mark.y) for mark in marks]
        axes.plot(xs, ys, linestyle="none", zorder=4, **style(look))

        along = panel.across if panel.has_rows else panel.up
        intervals = [
            (x, y, along.at(mark.low), along.at(mark.high))
            for x, y, mark in zip(xs, ys, marks, strict=True)
            if mark.low is not None and mark.high is not None
        ]
        if intervals:
            draw_intervals(axes, intervals, panel, look)


def draw_intervals(
    axes: Axes, intervals: Sequence[tuple[float, float, float, float]], panel: Panel, look: Look
) -> None:
    """Draws intervals, given as x, y and both ends: along the rows if there are any, else up."""
    xs, ys, lows, highs = zip(*intervals, strict=True)
    if panel.has_rows:
        axes.hlines(ys, lows, highs, color=INK, linewidth=1.4, zorder=2, capstyle="projecting")
        return

    below = [max(0.0, y - low) for y, low in zip(ys, lows, strict=True)]
    above = [max(0.0, high - y) for y, high in zip(ys, highs, strict=True)]
    axes.errorbar(
        xs,
        ys,
        yerr=[below, above],
        fmt="none",
        ecolor=look.colour,
        # Paler than a line through the points.
        alpha=0.45 if panel.lines else 1.0,
        capsize=2.5,
        linewidth=1,
        zorder=3 if panel.bars else 2,
    )


def draw_bar(axes: Axes, bar: Bar, across: Axis, up: Axis) -> None:
    """Draws a bar from 0 up."""
    bottom = up.at(0)
    width = across.at(0.7) - across.at(0)
    axes.bar(across.at(bar.x), up.at(bar.top) - bottom, width, bottom, color=bar.colour, zorder=2)


def draw_cell(axes: Axes, cell: Cell, across: Axis, up: Axis) -> None:
    """Draws a cell of a matrix, with its words."""
    from matplotlib.patches import Rectangle

    corner = across.at(cell.x - 0.48), up.at(cell.y - 0.48)
    width, height = across.at(cell.x + 0.48) - corner[0], up.at(cell.y + 0.48) - corner[1]
    # Below the shade: an empty cell is a cell too.
    axes.add_patch(Rectangle(corner, width, height, facecolor="#F4F4F4"))
    axes.add_patch(Rectangle(corner, width, height, facecolor=cell.colour, alpha=cell.shade))
    if cell.is_framed:
        axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=INK, zorder=4))

    # On a dark shade dark words can't be read.
    ink = "white" if cell.shade > 0.52 else INK
    axes.text(
        corner[0] + width / 2,
        corner[1] + height / 2,
        cell.text,
        ha="center",
        va="center",
        fontsize=8,
        color=ink,
    )


def add_names(axes: Axes, panel: Panel) -> None:
    """Writes the names of the marks beside them."""
    points, spans = [], []
    for mark in panel.marks:
        y = panel.up.at(mark.y)
        points.append((panel.across.at(mark.x), y, mark.name))
        ends = [y if end is None else panel.up.at(end) for end in (mark.low, mark.high)]
        spans.append((ends[0], ends[1]))

    name_points(axes, points, spans)


def warm_up() -> None:
    """Loads matplotlib and its fonts, so that the first plot doesn't wait for them."""
    mark = Mark(0, 0, Look(INK, "o"), name="a name")
    axis = named_axis(["a", "b"])
    panel = Panel(axis, axis, marks=[mark, replace(mark, x=1)], has_names=True)
    with TemporaryDirectory(prefix="memeval-") as folder:
        draw(Plot("a title", [[panel]], width=1, height=1), Path(folder) / "plot.png")
