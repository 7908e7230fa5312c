"""Finished runs against each other: found, paired question by question, tested, put in words.

Nothing is compared in silence that differs in more than what is compared: see `protocol`.
"""

from memeval.compare.build import compare_runs
from memeval.compare.finding import FinishedRun
from memeval.compare.metric import metric_named
from memeval.compare.records import (
    CaseDifference,
    CategoryDifference,
    ComparedRun,
    Comparison,
    Difference,
    Refusal,
)

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
