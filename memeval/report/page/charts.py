"""The forest plot of a comparison, and the shades of differences in tables."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.report.compared import ComparisonData
from memeval.report.page.data import ConversationData
from memeval.report.plots.differences import DifferenceRow, forest_panel
from memeval.report.plots.model import Panel

LEVELS = 3
"""Shades of a colour on either side of no difference."""


def forest(comparison: ComparisonData) -> Panel | None:
    """The forest plot of a comparison; None if nothing is compared."""
    scale = comparison.scale
    rows = [
        DifferenceRow(
            name=row.label,
            delta=scale * row.delta,
            low=None if row.low is None else scale * row.low,
            high=None if row.high is None else scale * row.high,
            is_shown=row.is_shown,
        )
        for row in comparison.differences
    ]
    return forest_panel(rows, comparison.unit) if rows else None


def shade(value: float | None, largest: float) -> str:
    """Class of a coloured figure: `plus1` … `plus3`, `minus1` … `minus3`, or `none`."""
    if value is None or largest <= 0 or abs(value) < 0.05 * largest:
        return "none"

    level = min(LEVELS, 1 + int(LEVELS * abs(value) / largest))
    return f"{'plus' if value > 0 else 'minus'}{level}"


def largest_difference(conversations: Sequence[ConversationData]) -> float:
    """The largest difference in any conversation: the shades are relative to it."""
    return max(
        (
            abs(difference)
            for conversation in conversations
            for difference in conversation.differences
            if difference is not None
        ),
        default=0.0,
    )
