"""Accuracy against cost: dollars, tokens of context or seconds."""

from collections.abc import Sequence
from itertools import pairwise
from math import log

Point = tuple[float, float]
"""Cost of a cell, and its accuracy."""


def pareto_frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other dominates, the cheapest first.

    A point is dominated if another one costs no more and is no less accurate, and is better in one
    of the two. Equal points are all kept.
    """
    # At equal cost the most accurate first: the others are dominated by it.
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or point[1] > kept[-1][1] or point == kept[-1]:
            kept.append(point)

    return kept


def frontier_area(points: Sequence[Point], low: float, high: float) -> float:
    """Mean attainable accuracy over all budgets from `low` to `high`, on a logarithmic scale.

    (1/ln(high/low)) · Σ best accuracy up to the left end · ln(right/left), over the pieces into
    which the points cut [low, high]; 0 if no point is affordable yet. Raises `ValueError` unless 0
    < low < high.

    Source: the form of LAFS, the latency-accuracy frontier score.
    """
    if not 0 < low < high:
        raise ValueError(f"{low} to {high} is not a range of budgets")

    ends = sorted({low, high, *(cost for cost, _ in points if low < cost < high)})
    area = 0.0
    for left, right in pairwise(ends):
        best = max((accuracy for cost, accuracy in points if cost <= left), default=0.0)
        area += best * log(right / left)

    return area / log(high / low)
