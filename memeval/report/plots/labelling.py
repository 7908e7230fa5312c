"""Free places for names next to the points of a plot."""

from collections.abc import Iterator

from msgspec import Struct, field

Box = tuple[float, float, float, float]
"""Left, lower, right and upper edge, in pixels; vertical positions may also count downwards."""

RINGS = 9
"""Most lines of text between a name and its point. Names without a nearer place are left out."""


class PlotArea(Struct, frozen=True):
    """An area, and the boxes that are taken in it."""

    area: Box
    taken: list[Box] = field(default_factory=list)

    def has_place(self, box: Box) -> bool:
        """Whether a box is inside, and free."""
        is_across = self.area[0] <= box[0] and box[2] <= self.area[2]
        is_inside = is_across and self.area[1] <= box[1] and box[3] <= self.area[3]
        return is_inside and not any(overlap(box, other) for other in self.taken)


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
