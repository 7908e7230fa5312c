"""Free places for names next to the points of a plot."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct, field

from memeval.report.plots.model import Mark

Box = tuple[float, float, float, float]
"""Left, lower, right and upper edge, in pixels; vertical positions may also count downwards."""

RINGS = 9
"""Most lines of text between a name and its point. Names without a nearer place are left out."""


class PlotArea(Struct, frozen=True):
    """A panel as it is drawn, and the boxes that are taken in it."""

    area: Box
    at: Callable[[float, float], tuple[float, float]]
    """Returns the position of a pair of values, in pixels."""
    unit: float = 1.0
    """Pixels per unit of offsets and of sizes around marks."""
    taken: list[Box] = field(default_factory=list)

    def keep_clear(self, marks: Sequence[Mark], across: float, up: float, interval: float) -> None:
        """Takes the boxes of marks and of their intervals, of these half widths and heights."""
        across, up, interval = across * self.unit, up * self.unit, interval * self.unit
        for mark in marks:
            x, y = self.at(mark.x, mark.y)
            self.taken.append((x - across, y - up, x + across, y + up))
            if mark.low is not None and mark.high is not None:
                ends = self.at(mark.x, mark.low)[1], self.at(mark.x, mark.high)[1]
                self.taken.append((x - interval, min(ends), x + interval, max(ends)))

    def has_place(self, box: Box) -> bool:
        """Whether a box is inside, and free."""
        is_across = self.area[0] <= box[0] and box[2] <= self.area[2]
        is_inside = is_across and self.area[1] <= box[1] and box[3] <= self.area[3]
        return is_inside and not any(overlap(box, other) for other in self.taken)


def place_name(
    mark: Mark, size: tuple[float, float], areas: Sequence[PlotArea]
) -> tuple[float, float] | None:
    """Takes the nearest place for a name of this width and height, in pixels, that is free in all
    areas, which have the same unit. Returns its offset from the mark, see `offsets`; None if there
    is no such place.
    """
    (width, height), unit = size, areas[0].unit
    for right, rise in offsets(width / unit, height / unit):
        boxes = []
        for area in areas:
            x, y = area.at(mark.x, mark.y)
            left, first = x + right * unit, y + rise * unit - height / 2
            boxes.append((left, first, left + width, first + height))

        if all(map(PlotArea.has_place, areas, boxes)):
            for area, box in zip(areas, boxes, strict=True):
                area.taken.append(box)

            return right, rise

    return None


def needs_line(rise: float, height: float) -> bool:
    """Whether a name is so far from its point that a line must lead to it."""
    return abs(rise) > 1.6 * height


def offsets(width: float, height: float) -> Iterator[tuple[float, float]]:
    """Places for a name around its point, the nearest first.

    Each is the offset from the point to the middle of the name's left side.
    """
    for ring in range(RINGS):
        rises = (ring * (height + 1), -ring * (height + 1)) if ring else (0.0,)
        for rise in rises:
            yield from ((7.0, rise), (-7 - width, rise))
            # Above and below the point, the name may also be centred over it, or nearly so.
            if ring:
                yield from ((-width / 2, rise), (-width / 4, rise), (-3 * width / 4, rise))


def overlap(first: Box, second: Box) -> bool:
    """Whether two boxes share any area."""
    share_x = first[0] < second[2] and second[0] < first[2]
    share_y = first[1] < second[3] and second[1] < first[3]
    return share_x and share_y
