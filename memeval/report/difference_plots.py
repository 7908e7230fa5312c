"""How runs differ, as pictures: a forest of intervals, and the conversations behind them.

Form and fill say what a mark means, never only its colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.report.canvas import BLUE, GREY, INK, ORANGE, PALE, canvas, save, wrap_title
from memeval.shown import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW = 0.27
"""Inches of a row, in which its name can be read at half the size."""
NAME = 46
"""Characters of a name beside a row."""


@dataclass(frozen=True)
class DifferenceRow:
    """A difference as it is drawn, in the unit of the axis."""

    name: str
    delta: float
    low: float | None
    high: float | None
    is_shown: bool
    """Whether the data tell the two runs apart."""
    cases: tuple[float, ...] = ()
    """The difference within each conversation."""


@dataclass(frozen=True)
class DrawnDifferences:
    """The differences of a comparison, as both of their plots show them."""

    rows: tuple[DifferenceRow, ...]
    title: str
    unit: str

    def to_json(self) -> dict[str, Any]:
        """As another process can be asked to draw them."""
        return asdict(self)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> DrawnDifferences:
        """Reads what `to_json` made."""
        rows = [DifferenceRow(**{**row, "cases": tuple(row["cases"])}) for row in members["rows"]]
        return cls(rows=tuple(rows), title=members["title"], unit=members["unit"])


def write_difference_plots(
    differences: DrawnDifferences, folder: Path, suffix: str = ""
) -> list[Path]:
    """Draws the differences, and the conversations behind them where there are several.

    `suffix` is added to the names, where the folder holds the plots of several data sets.
    """
    rows, title, unit = differences.rows, differences.title, differences.unit
    if not rows:
        return []

    drawn = [forest_plot(rows, title, unit, folder / f"differences{suffix}.png")]
    if any(len(row.cases) > 1 for row in rows):
        drawn.append(strip_plot(rows, title, unit, folder / f"conversations{suffix}.png"))

    return drawn


def forest_plot(rows: Sequence[DifferenceRow], title: str, unit: str, path: Path) -> Path:
    """Differences with their 95 % intervals, the highest on top."""
    ranked = rank(rows)
    figure, axes = row_canvas(ranked, title)
    for height, row in enumerate(ranked):
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [height, height], color=INK, linewidth=1.6, zorder=2)

        fill, mark = (BLUE, "s") if row.is_shown else ("white", "o")
        axes.plot(
            row.delta, height, mark, color=BLUE, markerfacecolor=fill, markersize=6.5, zorder=3
        )

    write_figures(axes, ranked)
    axes.set_xlabel(f"difference, {unit}, with its 95 % interval")
    add_legend(
        axes,
        [
            ("s", BLUE, BLUE, "told apart (adjusted p ≤ .05)"),
            ("o", BLUE, "white", "no difference shown"),
        ],
    )
    return save(figure, path)


def strip_plot(rows: Sequence[DifferenceRow], title: str, unit: str, path: Path) -> Path:
    """The difference within each conversation, and over all questions."""
    ranked = rank(rows)
    figure, axes = row_canvas(ranked, title)
    for height, row in enumerate(ranked):
        heights = [height] * len(row.cases)
        axes.plot(row.cases, heights, "|", color=GREY, markersize=11, markeredgewidth=1.8)
        axes.plot(row.delta, height, "D", color=ORANGE, markeredgecolor=INK, markersize=6, zorder=3)

    axes.set_xlabel(f"difference, {unit}")
    add_legend(
        axes,
        [("|", GREY, GREY, "within one conversation"), ("D", INK, ORANGE, "over all questions")],
    )
    return save(figure, path)


def rank(rows: Sequence[DifferenceRow]) -> list[DifferenceRow]:
    """The rows from the lowest difference up, as the axis is drawn; equal ones by name."""
    return sorted(rows, key=lambda row: (row.delta, row.name))


def row_canvas(rows: Sequence[DifferenceRow], title: str) -> tuple[Figure, Axes]:
    """A figure with a named row per difference and a line where there is none."""
    figure, axes = canvas(width=8.4, height=1.6 + ROW * max(len(rows), 2))
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
    axes.set_yticks(range(len(rows)), [one_line(row.name, NAME) for row in rows])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.tick_params(axis="y", length=0, labelsize=10)
    axes.grid(axis="x", color=PALE, linewidth=0.8)
    # Faint lines lead the eye from a name to its marks.
    axes.hlines(range(len(rows)), 0, 1, transform=axes.get_yaxis_transform(), color="#F2F2F2")
    axes.set_title(wrap_title(title, width=90), loc="left", fontsize=10)
    axes.title.set_horizontalalignment("left")
    return figure, axes


def write_figures(axes: Axes, rows: Sequence[DifferenceRow]) -> None:
    """Writes each difference to the right of its row: `+4.1 [0.9, 7.3]`."""
    for height, row in enumerate(rows):
        ends = ""
        if row.low is not None and row.high is not None:
            ends = f" [{row.low:.1f}, {row.high:.1f}]"

        text = f"{row.delta:+.1f}{ends}".replace("-", "−")
        axes.annotate(
            text,
            xy=(1.01, height),
            xycoords=axes.get_yaxis_transform(),
            va="center",
            fontsize=9.5,
            color=INK,
            annotation_clip=False,
        )


def add_legend(axes: Axes, entries: Sequence[tuple[str, str, str, str]]) -> None:
    """A legend below the axis: mark, its edge, its fill, and what it means."""
    from matplotlib.lines import Line2D

    marks = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=mark,
            markeredgecolor=edge,
            markerfacecolor=fill,
            markersize=7,
            markeredgewidth=1.6,
            label=text,
        )
        for mark, edge, fill, text in entries
    ]
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.legend(
        handles=marks, loc="outside lower center", ncols=len(marks), frameon=False, fontsize=9.5
    )
