"""Names beside the points of a plot, clear of everything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memeval.report.plots.model import GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

Box = tuple[float, float, float, float]
"""Left, bottom, right, top, in pixels."""

RINGS = 9
"""How many lines of text a name may be away from its point. Beyond that it is left out."""


def fix_layout(figure: Figure) -> None:
    """Finds room for all names, and keeps to it whatever is drawn afterwards."""
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
        # The last digits differ from run to run, and the ids within an SVG are made from them.
        for axes in figure.axes:
            left, bottom, width, height = (round(part, 6) for part in axes.get_position().bounds)
            axes.set_position((left, bottom, width, height))


def name_points(
    axes: Axes,
    points: Sequence[tuple[float, float, str]],
    spans: Sequence[tuple[float, float]],
) -> None:
    """Writes each point's name next to it, clear of points, intervals and other names.

    `points` are x, y and name, `spans` the ends of their intervals on the y axis. A thin line
    leads to a name that is not next to its point. A name for which there is no room is left out.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None

    # The positions in pixels are known once the layout is done, and must not change after that.
    fix_layout(figure)
    pixels = figure.dpi / 72

    occupied: list[Box] = []
    for (x, y, _), (low, high) in zip(points, spans, strict=True):
        left, middle = axes.transData.transform((x, y))
        bottom, top = (axes.transData.transform((x, end))[1] for end in (low, high))
        occupied += [
            (left - 4 * pixels, middle - 5 * pixels, left + 4 * pixels, middle + 5 * pixels),
            (left - 2 * pixels, bottom, left + 2 * pixels, top),
        ]

    for point in points:
        label = add_label(axes, *point)
        box = place_label(axes, label, occupied, pixels)
        if box:
            occupied.append(box)
        else:
            label.remove()


def add_label(axes: Axes, x: float, y: float, name: str) -> Annotation:
    """Writes a name on its point; it is moved away later."""
    from matplotlib.patheffects import withStroke

    return axes.annotate(
        name,
        (x, y),
        xytext=(0, 0),
        textcoords="offset points",
        fontsize=8,
        color=INK,
        va="center",
        zorder=4,
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )


def place_label(
    axes: Axes, label: Annotation, occupied: Sequence[Box], pixels: float
) -> Box | None:
    """Moves a name to the nearest free place, and returns the box that it occupies.

    None if there is no free place.
    """
    frame, extent = axes.get_window_extent(), label.get_window_extent()
    width, height = extent.width / pixels, extent.height / pixels
    x, y = axes.transData.transform(label.xy)

    for dx, dy in offsets(width, height):
        left, middle = x + dx * pixels, y + dy * pixels
        box = (left, middle - extent.height / 2, left + extent.width, middle + extent.height / 2)
        is_inside = (
            frame.x0 <= box[0] and box[2] <= frame.x1 and frame.y0 <= box[1] and box[3] <= frame.y1
        )
        if not is_inside or any(overlap(box, other) for other in occupied):
            continue

        label.set_position((dx, dy))
        # A name that is not beside its point needs a line to it.
        if abs(dy) > 1.6 * height:
            near_end = dx if dx > 0 else min(0.0, dx + width)
            line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4}
            axes.annotate(
                "",
                label.xy,
                xytext=(near_end, dy),
                textcoords="offset points",
                arrowprops=line,
                zorder=1,
            )

        return box

    return None


def offsets(width: float, height: float) -> Iterator[tuple[float, float]]:
    """Places for a name around its point, the nearest first.

    Each is the way from the point to the middle of the name's left side, in points (1/72 inch).
    """
    for ring in range(RINGS):
        rises = (ring * (height + 1), -ring * (height + 1)) if ring else (0.0,)
        for rise in rises:
            yield from ((7.0, rise), (-7 - width, rise))
            # Above and below the point there is room for a name right over it.
            if ring:
                yield from ((-width / 2, rise), (-width / 4, rise), (-3 * width / 4, rise))


def overlap(first: Box, second: Box) -> bool:
    """Whether two boxes share any area."""
    share_x = first[0] < second[2] and second[0] < first[2]
    share_y = first[1] < second[3] and second[1] < first[3]
    return share_x and share_y
