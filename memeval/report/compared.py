"""Content of the page about a comparison, as frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CategoryDelta:
    """A difference within one category: described, not tested."""

    name: str
    delta: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class DifferenceData:
    """How one cell differs from the baseline."""

    cell: str
    """Key of its run."""
    label: str
    delta: float
    low: float | None
    high: float | None
    p: float | None
    adjusted_p: float | None
    mde: float | None
    """Smallest difference that this data shows in four cases of five."""
    n: int | None
    """Questions that both scored."""
    is_shown: bool
    """Whether the data tell the two apart."""
    sentence: str
    categories: tuple[CategoryDelta, ...] = ()
    same_prompts: bool = False
    """Whether both sent the same prompts, so that there is nothing to compare."""


@dataclass(frozen=True)
class ComparisonData:
    """Findings of a comparison of the cells."""

    metric: str
    unit: str
    scale: float
    """The factor by which values are shown."""
    sentences: tuple[str, ...]
    """Sentences at the top of the page."""
    baseline: str | None
    """Key of its run; None if all pairs are compared."""
    differences: tuple[DifferenceData, ...]
    letters: Mapping[str, str]
    """By key: cells that share a letter can't be told apart."""
    remarks: tuple[str, ...]
    """Notes on the comparison for the reader: another judge, questions of one cell only."""
    adjusted_how: str = ""
    """How p is adjusted."""

    @property
    def categories(self) -> list[str]:
        """Names of the categories in which there is a difference, in their order."""
        return list(dict.fromkeys(row.name for pair in self.differences for row in pair.categories))
