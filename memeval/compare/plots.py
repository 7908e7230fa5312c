"""A comparison's pictures."""

from __future__ import annotations

from pathlib import Path

from memeval.compare.records import Comparison, Difference
from memeval.compare.tables import pair_label
from memeval.errors import StorageError
from memeval.report.difference_plots import DifferenceRow, forest_plot, strip_plot


def write_comparison_plots(comparison: Comparison, folder: Path) -> list[Path]:
    """Draws the differences and the conversations behind them.

    Raises `StorageError` where the disk refuses.
    """
    rows = [difference_row(comparison, pair) for pair in comparison.differences]
    if not rows:
        return []

    title = plot_title(comparison)
    try:
        drawn = forest_plot(rows, title, comparison.unit, folder / "differences")
        if any(len(row.cases) > 1 for row in rows):
            drawn += strip_plot(rows, title, comparison.unit, folder / "conversations")
    except OSError as error:
        raise StorageError(f"{folder} can't be written: {error.strerror or error}") from error

    return drawn


def difference_row(comparison: Comparison, pair: Difference) -> DifferenceRow:
    """A difference in the unit in which it is shown."""
    scale, result = comparison.scale, pair.result
    return DifferenceRow(
        name=pair_label(comparison, pair),
        delta=scale * result.mean,
        low=None if result.low is None else scale * result.low,
        high=None if result.high is None else scale * result.high,
        is_shown=pair.is_shown,
        cases=tuple(scale * case.mean for case in pair.cases),
    )


def plot_title(comparison: Comparison) -> str:
    """What is drawn, and what was forced."""
    title = f"{comparison.metric}, each pair of runs"
    if comparison.baseline is not None:
        title = f"{comparison.metric} minus that of {comparison.run(comparison.baseline).label}"

    if comparison.forced:
        title += f". FORCED, not comparable: {'; '.join(comparison.forced)}"

    return title
