"""Looks through a finished run for what would make its figures look better than they are."""

from memeval.datasets.lint.check import lint_run
from memeval.datasets.lint.records import Finding, Lint, Material

__all__ = ["Finding", "Lint", "Material", "lint_run"]
