"""Names beside the points of a plot, where nothing else is in the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

Box = tuple[float, float, float, float]
"""Left, bottom, right, top, in pixels."""

RINGS = 9
"""How many lines of text a name may stand away from its point before it is left out."""


def name_points(
    axes: Axes,
    points: Sequence[tuple[float, float, str]],
    spans: Sequence[tuple[float, float]],
    first: int | None = None,
) -> None:
    """Writes each point's name next to it, clear of points, intervals and other names; a thin line leads to a name that stands off.

    `points` are x, y and name, `spans` the ends of their intervals on the y axis. The `first` is placed first, in bold. A name for which
    there is no room is left out. The layout of the figure is settled here: what changes it has to come before.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    pixels = figure.dpi / 72
    taken: list[Box] = []
    for (x, y, _), (low, high) in zip(points, spans, strict=True):
        (left, bottom), (_, middle), (_, top) = (
            axes.transData.transform((x, place)) for place in (low, y, high)
        )
        taken.append(
            (left - 4 * pixels, middle - 5 * pixels, left + 4 * pixels, middle + 5 * pixels)
        )
        taken.append((left - 2 * pixels, bottom, left + 2 * pixels, top))
    for index in sorted(range(len(points)), key=lambda index: index != first):
        label = written(axes, *points[index], bold=index == first)
        if box := placed(axes, label, taken, pixels):
            taken.append(box)
        else:
            label.remove()


def written(axes: Axes, x: float, y: float, name: str, bold: bool) -> Annotation:
    """A name on its point, to be moved."""
    from matplotlib.patheffects import withStroke

    return axes.annotate(
        name,
        (x, y),
        xytext=(0, 0),
        textcoords="offset points",
        fontsize=8,
        color="#333333",
        fontweight="bold" if bold else "normal",
        va="center",
        zorder=4,
        path_effects=[withStroke(linewidth=2, foreground="white")],
    )


def placed(axes: Axes, label: Annotation, taken: Sequence[Box], pixels: float) -> Box | None:
    """Moves a name to the nearest free place and returns the box it takes; None where there is none."""
    frame, extent = axes.get_window_extent(), label.get_window_extent()
    x, y = axes.transData.transform(label.xy)
    for dx, dy in offsets(extent.width / pixels, extent.height / pixels):
        left, middle = x + dx * pixels, y + dy * pixels
        box = (left, middle - extent.height / 2, left + extent.width, middle + extent.height / 2)
        within = (
            frame.x0 <= box[0] and box[2] <= frame.x1 and frame.y0 <= box[1] and box[3] <= frame.y1
        )
        if within and not any(overlap(box, other) for other in taken):
            label.set_position((dx, dy))
            if abs(dy) > 1.6 * extent.height / pixels:
                near = dx if dx > 0 else min(0.0, dx + extent.width / pixels)
                line = {
                    "arrowstyle": "-",
                    "color": "#8C8C8C",
                    "linewidth": 0.6,
                    "shrinkA": 0,
                    "shrinkB": 4,
                }
                axes.annotate(
                    "",
                    label.xy,
                    xytext=(near, dy),
                    textcoords="offset points",
                    arrowprops=line,
                    zorder=1,
                )
            return box
    return None


def offsets(width: float, height: float) -> Iterator[tuple[float, float]]:
    """Places for a name around its point, the nearest first: points (1/72 inch) from the point to the name's left middle."""
    for ring in range(RINGS):
        for rise in (ring * (height + 1), -ring * (height + 1)) if ring else (0.0,):
            yield from ((7.0, rise), (-7 - width, rise))
            if ring:
                yield from ((-width / 2, rise), (-width / 4, rise), (-3 * width / 4, rise))


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes share any area."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
