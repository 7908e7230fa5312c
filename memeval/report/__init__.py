"""Output about a run for people: `report.md`, plots, and tables that compare cells.

Nothing is measured here.
"""

from memeval.report.comparison import comparison_csv, comparison_markdown, comparison_table
from memeval.report.markdown import write_report
from memeval.report.plots.prices import sweep_plot

__all__ = [
    "comparison_csv",
    "comparison_markdown",
    "comparison_table",
    "sweep_plot",
    "write_report",
]
