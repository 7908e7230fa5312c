"""The forest plot of a comparison, and the shades of differences in tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memeval.page.axis import Axis, Tick
from memeval.page.data import ComparisonData, ConversationData

LEVELS = 3
"""Shades of a colour on either side of no difference."""


@dataclass(frozen=True)
class Lane:
    """One row of a forest plot."""

    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Forest:
    """Differences with their intervals, in one column."""

    zero: float
    ticks: tuple[Tick, ...]
    lanes: tuple[Lane, ...]


def forest(comparison: ComparisonData) -> Forest | None:
    """The forest plot of a comparison; None where nothing is compared."""
    # The line of no difference is always on the axis.
    ends = [0.0]
    for difference in comparison.differences:
        ends += [difference.delta, difference.low or 0.0, difference.high or 0.0]

    if len(ends) == 1:
        return None

    axis = Axis(min(ends), max(ends))
    lanes = tuple(
        Lane(
            at=axis.at(difference.delta),
            low=None if difference.low is None else axis.at(difference.low),
            high=None if difference.high is None else axis.at(difference.high),
        )
        for difference in comparison.differences
    )
    ticks = tuple(
        Tick(axis.at(value), f"{comparison.scale * value:+.3g}" if value else "0")
        for value in axis.ticks()
    )
    return Forest(zero=axis.at(0.0), ticks=ticks, lanes=lanes)


def shade(value: float | None, largest: float) -> str:
    """Class of a coloured figure: `plus1` … `plus3`, `minus1` … `minus3`, or `none`."""
    if value is None or largest <= 0 or abs(value) < 0.05 * largest:
        return "none"

    level = min(LEVELS, 1 + int(LEVELS * abs(value) / largest))
    return f"{'plus' if value > 0 else 'minus'}{level}"


def largest_difference(conversations: Sequence[ConversationData]) -> float:
    """The largest difference in any conversation: what the shades are relative to."""
    return max(
        (
            abs(difference)
            for conversation in conversations
            for difference in conversation.differences
            if difference is not None
        ),
        default=0.0,
    )
