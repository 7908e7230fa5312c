"""Finished runs against each other: found, paired question by question, tested, put in words.

Nothing is compared in silence that differs in more than what is compared: see `protocol`.
"""

from memeval.comparison.build import compare_runs
from memeval.comparison.finding import FinishedRun
from memeval.comparison.records import (
    CaseDifference,
    CategoryDifference,
    ComparedRun,
    Comparison,
    Difference,
    Refusal,
)
from memeval.metrics.registry import metric_named

__all__ = [
    "CaseDifference",
    "CategoryDifference",
    "ComparedRun",
    "Comparison",
    "Difference",
    "FinishedRun",
    "Refusal",
    "compare_runs",
    "metric_named",
]
