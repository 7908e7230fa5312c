"""A comparison's pictures."""

from __future__ import annotations

from pathlib import Path

from memeval.comparison.records import Comparison, Difference
from memeval.comparison.tables import pair_label
from memeval.report.plots.differences import (
    DifferenceRow,
    DrawnDifferences,
    write_difference_plots,
)
from memeval.results.files import writing


def write_comparison_plots(comparison: Comparison, folder: Path, suffix: str = "") -> list[Path]:
    """Draws the differences and the conversations behind them.

    Raises `StorageError` if the disk refuses.
    """
    with writing(folder):
        return write_difference_plots(as_drawn(comparison), folder, suffix)


def as_drawn(comparison: Comparison) -> DrawnDifferences:
    """Content of the plots of a comparison."""
    rows = [difference_row(comparison, pair) for pair in comparison.differences]
    return DrawnDifferences(tuple(rows), plot_title(comparison), comparison.unit)


def difference_row(comparison: Comparison, pair: Difference) -> DifferenceRow:
    """A difference in the unit in which it is shown."""
    scale, result = comparison.scale, pair.result
    # A mark at 0 would look like something that was measured.
    same = " (same prompts)" if pair.same_prompts else ""
    return DifferenceRow(
        name=pair_label(comparison, pair) + same,
        delta=scale * result.mean,
        low=None if result.low is None else scale * result.low,
        high=None if result.high is None else scale * result.high,
        is_shown=pair.is_shown,
        cases=tuple(scale * case.mean for case in pair.cases),
    )


def plot_title(comparison: Comparison) -> str:
    """Title that says what is drawn, and what was forced."""
    title = f"{comparison.metric}, each pair of runs"
    if comparison.baseline is not None:
        title = f"{comparison.metric} minus that of {comparison.run(comparison.baseline).label}"

    if comparison.warning:
        title += f". {comparison.warning}"

    return title
