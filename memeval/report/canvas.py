"""What all plots share: figures, colours and marks, titles, and the two files of a plot.

Figures are drawn by object, without pyplot's global state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.shown import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#8C8C8C", "#333333"
"""Okabe and Ito's colours, which colour-blind people can distinguish, and two neutral ones."""
PALE = "#E6E6E6"
"""Of grid lines."""
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", GREY)
"""Okabe and Ito's, without the yellow, which is too pale on white."""
MARKS = "osD^vPX*"

DPI = 150
LONGEST_NAME = 120
"""Characters of a name in a plot."""


@dataclass(frozen=True)
class Look:
    """Colour and form of one series: no two series differ only in colour."""

    colour: str
    mark: str
    line: str = "-"


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name, in the order in which the names first come."""
    looks = {}
    for index, name in enumerate(dict.fromkeys(names)):
        lap = index // len(COLOURS)
        looks[name] = Look(
            colour=COLOURS[index % len(COLOURS)],
            # In the second lap each colour gets another form.
            mark=MARKS[(index + lap) % len(MARKS)],
            line="--" if lap % 2 else "-",
        )

    return looks


def add_series_legend(figure: Figure, looks: Mapping[str, Look]) -> None:
    """Names the series to the right of the plot. Call it before the layout is done."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=look.mark,
            color=look.colour,
            markersize=6,
            label=wrap_title(name, 28),
        )
        for name, look in looks.items()
    ]
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=9)


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure with one plain pair of axes."""
    figure = empty_figure(width, height)
    axes = figure.add_subplot()
    clear_frame(axes)

    return figure, axes


def empty_figure(width: float, height: float) -> Figure:
    """A figure of this size in inches, which finds room for its names by itself."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    matplotlib.rcParams["text.parse_math"] = False  # dollars in names are not formulas
    # Not pyplot: its figures are global, and stay in memory until they are closed.
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)

    return figure


def clear_frame(axes: Axes) -> None:
    """Leaves the frame out above and to the right, and puts the grid behind the marks."""
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)

    axes.tick_params(labelsize=9)


def save(figure: Figure, path: Path) -> Path:
    """Writes a plot as PNG and, beside it, as SVG; the same figures give the same bytes.

    Returns the path of the PNG.
    """
    import matplotlib

    png = path.with_suffix(".png")
    # Matplotlib's version is left out: it would change the bytes with each release.
    figure.savefig(png, metadata={"Software": None})
    # Without the salt, the ids within an SVG are drawn at random.
    with matplotlib.rc_context({"svg.hashsalt": "memeval"}):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Creator": None})

    return png


def wrap_name(name: str) -> str:
    """A category's name on short lines: `single-session-user` on three."""
    return "\n".join(re.split(r"[-_ ]", one_line(name, LONGEST_NAME)))


def wrap_title(text: str, width: int) -> str:
    """A title on lines of at most `width` characters."""
    import textwrap

    return "\n".join(textwrap.wrap(one_line(text, 2 * LONGEST_NAME), width))


def name_datasets(datasets: Sequence[str]) -> str:
    """The data sets of a plot, for its title."""
    return ", ".join(sorted(set(datasets))) or "nothing measured"


def warm_up() -> None:
    """Loads matplotlib and its fonts, so that the first plot doesn't wait for them."""
    import io

    figure, _ = canvas(1, 1)
    figure.savefig(io.BytesIO())
