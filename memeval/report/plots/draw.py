"""Draws plots into files with matplotlib, by object, without pyplot's global state.

Loading this module loads matplotlib.
"""

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import get_font_names
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from msgspec.structs import replace

from memeval.report.plots.labelling import PlotArea, needs_line, place_name
from memeval.report.plots.model import (
    GREY,
    INK,
    Mark,
    MarkStyle,
    MatrixCell,
    Panel,
    Plot,
    named_axis,
    wrap_title,
)
from memeval.results.files import temporary_folder

PALE = "#E9E9E9"
"""Colour of grid lines."""
DPI = 150
FURTHER_FONTS = (
    *("Noto Sans CJK", "Source Han Sans", "WenQuanYi", "Droid Sans Fallback", "IPAGothic"),
    *("Hiragino Sans", "Apple SD Gothic", "Arial Unicode", "Microsoft YaHei", "Yu Gothic"),
    *("Malgun Gothic", "Noto Emoji"),
)
"""First words of the names of fonts for characters that matplotlib's font lacks."""
_drawing = RLock()
"""Held while a plot is drawn: matplotlib's settings are those of all threads."""


def draw_all(plots: Mapping[str, Plot], folder: Path) -> list[Path]:
    """Writes plots under their names, see `draw`. Returns the paths of the PNGs."""
    return [draw(plot, folder / f"{name}.png") for name, plot in plots.items()]


def draw(plot: Plot, path: Path) -> Path:
    """Writes a plot as PNG and, next to it, as SVG; the same plot gives the same bytes.

    Returns the path of the PNG. A character that no font has is drawn as a box.
    """
    with _settings(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph ", UserWarning)
        return _write_files(draw_figure(plot), path.with_suffix(".png"))


def _write_files(figure: Figure, png: Path) -> Path:
    # `Figure.savefig` would draw a figure twice, and lay it out, for each of the two files.
    fix_layout(figure)
    # Matplotlib's version is left out: it would change the bytes with each release.
    agg = FigureCanvasAgg(figure)
    agg.print_png(  # type: ignore[no-untyped-call]
        # The default level of 6 takes three times as long for files a tenth or a fifth smaller.
        png,
        metadata={"Software": None},
        pil_kwargs={"compress_level": 2},
    )
    svg = FigureCanvasSVG(figure)
    svg.print_svg(  # type: ignore[no-untyped-call]
        png.with_suffix(".svg"), metadata={"Date": None, "Creator": None}
    )
    return png


class InlineFigure(Figure):
    """A figure that a notebook shows although pyplot never saw it."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


@cache
def _further_fonts() -> list[str]:
    return sorted(name for name in get_font_names() if name.startswith(FURTHER_FONTS))


@contextmanager
def _settings() -> Iterator[None]:
    """matplotlib's settings inside a block: outside of it, a notebook's own plots keep theirs."""
    with _drawing:
        families = dict.fromkeys([*matplotlib.rcParams["font.family"], *_further_fonts()])
        # Dollars in names are not formulas; without the salt, an SVG's ids are drawn at random.
        with matplotlib.rc_context(
            {"text.parse_math": False, "font.family": list(families), "svg.hashsalt": "memeval"}
        ):
            yield


@_settings()
def draw_figure(plot: Plot) -> InlineFigure:
    """A plot as a figure of matplotlib."""
    # Not pyplot: its figures are global, and stay in memory until they are closed.
    figure = InlineFigure(figsize=(plot.width, plot.height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(plot.title, x=0.01, ha="left", fontsize=10)
    if plot.legend:
        add_legend(figure, plot.legend, below=plot.has_legend_below)

    wide = max(map(len, plot.panels))
    grid = figure.subplots(len(plot.panels), wide, squeeze=False, width_ratios=plot.widths)
    for row, panels in zip(grid, plot.panels, strict=True):
        for axes in row[len(panels) :]:
            axes.set_axis_off()

        for axes, panel in zip(row, panels, strict=False):
            # Panels in one row may share the vertical axis.
            draw_panel(axes, panel, has_ticks=axes is row[0] or panel.up != panels[0].up)

    # Names come last: they are placed once the layout is done.
    for axes, panel in zip(grid.flat, chain.from_iterable(plot.panels), strict=False):
        if panel.has_names:
            fix_layout(figure)
            add_names(axes, panel)

    return figure


def add_legend(figure: Figure, legend: dict[str, MarkStyle], *, below: bool) -> None:
    """Adds a legend of the styles, to the right of the plot or below, before the layout is done."""
    width, columns = 28, 1
    if below:
        width, columns = 60, len(legend)

    handles = []
    for name, style in legend.items():
        label = wrap_title(name, width)
        handles.append(Line2D([], [], linestyle="none", label=label, **mark_options(style)))

    figure.legend(
        handles=handles,
        loc="outside lower center" if below else "outside right upper",
        ncols=columns,
        frameon=False,
        fontsize=9,
    )


def mark_options(style: MarkStyle) -> dict[str, Any]:
    """matplotlib's options for a mark."""
    size, line, fill = 6.0, 1.0, style.colour
    if style.mark == "|":
        size, line = 11.0, 1.8
    if style.is_hollow:
        fill = "white"

    return {
        "marker": style.mark,
        "color": style.colour,
        "markersize": size,
        "markeredgecolor": style.edge or style.colour,
        "markeredgewidth": line,
        "markerfacecolor": fill,
    }


def draw_panel(axes: Axes, panel: Panel, *, has_ticks: bool) -> None:
    """Draws one panel between a pair of axes that go from 0 to 100."""
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    axes.set_axisbelow(True)
    axes.set_title(panel.title, fontsize=9, loc="center" if panel.has_rows else "left")
    set_ticks(axes, panel)
    axes.set_xlabel(panel.across.title, fontsize=9)
    if has_ticks:
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
        drawn.set_ticks(list(map(axis.at, axis.ticks)), list(axis.ticks.values()))
        if axis.has_grid:
            drawn.grid(color=PALE, linewidth=0.8)

    # Named ticks need no tick marks.
    if panel.has_bars or panel.cells:
        axes.tick_params(length=0)
    if panel.has_rows:
        axes.tick_params(axis="y", length=0)

    if panel.has_zero:
        axes.axvline(panel.across.at(0), color=INK, linewidth=0.9, zorder=1)


def draw_contents(axes: Axes, panel: Panel) -> None:
    if panel.steps:
        corners = list(zip(*(panel.at(*step) for step in panel.steps), strict=True))
        dashes = (0, (5, 2))
        axes.plot(
            *corners, drawstyle="steps-post", color=INK, linewidth=1.1, linestyle=dashes, zorder=1
        )

    if panel.has_bars:
        bottom, width = panel.up.at(0), panel.across.at(0.7) - panel.across.at(0)
        for mark in panel.marks:
            x, top = panel.at(mark.x, mark.y)
            axes.bar(x, top - bottom, width, bottom, color=mark.style.colour, zorder=2)

    for cell in panel.cells:
        draw_cell(axes, cell, panel)

    for line in panel.lines:
        style = line[0].style
        places = places_of(line, panel)
        axes.plot(*places, style.line, color=style.colour, linewidth=1.6, zorder=3)

    # One call per style, since each call is slow.
    by_style: dict[MarkStyle, list[Mark]] = {}
    for mark in panel.all_marks:
        by_style.setdefault(mark.style, []).append(mark)

    for style, marks in by_style.items():
        axes.plot(*places_of(marks, panel), linestyle="none", zorder=4, **mark_options(style))
        draw_intervals(axes, marks, panel)

    for words in panel.words:
        position = panel.at(words.x, words.y)
        axes.text(*position, words.text, ha="center", fontsize=8, color=words.colour)

    for mark in panel.marks:
        if panel.has_rows and mark.text:
            axes.text(102, panel.up.at(mark.y), mark.text, va="center", fontsize=9, color=INK)


def places_of(marks: Sequence[Mark], panel: Panel) -> tuple[list[float], list[float]]:
    """Positions of marks, horizontal and vertical, in per cent of the panel."""
    xs, ys = [], []
    for mark in marks:
        x, y = panel.at(mark.x, mark.y)
        xs.append(x + mark.aside)
        ys.append(y)

    return xs, ys


def draw_intervals(axes: Axes, marks: Sequence[Mark], panel: Panel) -> None:
    """Draws the intervals of marks of one style: along the rows if there are any, else up."""
    along = panel.across if panel.has_rows else panel.up
    measured, lows, highs = [], [], []
    for mark in marks:
        if mark.low is not None and mark.high is not None:
            measured.append(mark)
            lows.append(along.at(mark.low))
            highs.append(along.at(mark.high))

    if not measured:
        return

    xs, ys = places_of(measured, panel)
    if panel.has_rows:
        axes.hlines(ys, lows, highs, color=INK, linewidth=1.4, zorder=2, capstyle="projecting")
        return

    colour, order = marks[0].style.colour, 2
    if panel.has_bars:
        colour, order = INK, 3

    axes.errorbar(
        xs,
        ys,
        yerr=[np.subtract(ys, lows).clip(0), np.subtract(highs, ys).clip(0)],
        fmt="none",
        ecolor=colour,
        # Paler than a line through the points.
        alpha=0.45 if panel.lines else 1.0,
        capsize=2.5,
        linewidth=1,
        zorder=order,
    )


def draw_cell(axes: Axes, cell: MatrixCell, panel: Panel) -> None:
    left, bottom = panel.at(cell.x - 0.48, cell.y - 0.48)
    right, top = panel.at(cell.x + 0.48, cell.y + 0.48)
    # Below the shade, so that an empty cell is also visible.
    looks: list[dict[str, Any]] = [{"facecolor": "#F4F4F4"}]
    looks.append({"facecolor": cell.colour, "alpha": cell.shade})
    if cell.is_framed:
        looks.append({"fill": False, "edgecolor": INK, "zorder": 4})

    for look in looks:
        axes.add_patch(Rectangle((left, bottom), right - left, top - bottom, **look))

    # Dark text can't be read on a dark shade.
    ink = "white" if cell.shade > 0.52 else INK
    middle = (left + right) / 2, (bottom + top) / 2
    axes.text(*middle, cell.text, ha="center", va="center", fontsize=8, color=ink)


def fix_layout(figure: Figure) -> None:
    """Makes room for all names, and keeps that layout for everything drawn afterwards."""
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
        # The last digits differ from run to run, and the ids within an SVG are made from them.
        for axes in figure.axes:
            left, bottom, width, height = (round(part, 6) for part in axes.get_position().bounds)
            axes.set_position((left, bottom, width, height))


def add_names(axes: Axes, panel: Panel) -> None:
    """Writes each mark's name next to it, clear of marks, intervals and other names.

    A thin line leads to a name that is not next to its mark. A name for which there is no room is
    left out.
    """
    frame = axes.get_window_extent()

    def at(x: float, y: float) -> tuple[float, float]:
        left, up = axes.transData.transform(panel.at(x, y))
        return left, up

    area = PlotArea((frame.x0, frame.y0, frame.x1, frame.y1), at, unit=DPI / 72)
    area.keep_clear(panel.marks, across=4, up=5, interval=2)
    for mark in panel.marks:
        # On its mark at first, to measure its size.
        label = axes.annotate(
            mark.name,
            panel.at(mark.x, mark.y),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=8,
            color=INK,
            va="center",
            zorder=4,
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )
        extent = label.get_window_extent()
        offset = place_name(mark, (extent.width, extent.height), [area])
        if offset is None:
            label.remove()
            continue

        label.set_position(offset)
        (right, rise), width = offset, extent.width / area.unit
        if needs_line(rise, extent.height / area.unit):
            near_end = right if right > 0 else min(0.0, right + width)
            add_leader(axes, label.xy, (near_end, rise))


def add_leader(axes: Axes, point: tuple[float, float], end: tuple[float, float]) -> None:
    """Adds a thin line from a point to the end of its name, an offset in points."""
    line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4}
    axes.annotate("", point, xytext=end, textcoords="offset points", arrowprops=line, zorder=1)


def warm_up() -> None:
    """Loads matplotlib and its fonts, so that the first plot doesn't wait for them."""
    mark = Mark(0, 0, MarkStyle(INK, "o"), name="a name")
    axis = named_axis(["a", "b"])
    panel = Panel(axis, axis, marks=[mark, replace(mark, x=1)], has_names=True)
    with temporary_folder("plots") as folder:
        draw(Plot("a title", [[panel]], width=1, height=1), Path(folder) / "plot.png")
