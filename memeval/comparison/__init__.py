"""Finished runs against each other: found, paired question by question, tested, put in words.

Nothing is compared in silence that differs in more than what is compared: see `protocol`.
"""

from memeval.comparison.build import compare_runs
from memeval.comparison.records import (
    CaseDifference,
    CategoryDifference,
    ComparedRun,
    Comparison,
    Difference,
    Refusal,
)
from memeval.metrics.registry import metric_named
from memeval.results.run import Run

__all__ = [
    "CaseDifference",
    "CategoryDifference",
    "ComparedRun",
    "Comparison",
    "Difference",
    "Refusal",
    "Run",
    "compare_runs",
    "metric_named",
]
