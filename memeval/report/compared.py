"""Content of the page about a comparison, as frozen records."""

from collections.abc import Mapping

from msgspec import Struct, field

from memeval.report.plots.model import Panel
from memeval.statistics.differences import ClusteredDifference


class DifferenceData(Struct, frozen=True):
    """The difference of one cell from the baseline."""

    cell: str
    """Key of its run."""
    label: str
    result: ClusteredDifference
    adjusted_p: float | None
    is_shown: bool
    """Whether the data show a difference between the two."""
    sentence: str
    categories: Mapping[str, ClusteredDifference] = field(default_factory=dict)
    """By category name: reported, but not tested."""
    same_prompts: bool = False
    """Whether both sent the same prompts, so that there is nothing to compare."""


class ComparisonData(Struct, frozen=True):
    metric: str
    unit: str
    sentences: tuple[str, ...]
    """Sentences at the top of the page."""
    baseline: str | None
    """Key of the baseline's run; None if all pairs are compared."""
    differences: tuple[DifferenceData, ...]
    forest: Panel
    """The differences to be drawn."""
    letters: Mapping[str, str]
    """By key: cells that share a letter can't be told apart."""
    remarks: tuple[str, ...]
    """Notes on the comparison for the reader: a different judge, questions of one cell only."""
    adjusted_how: str = ""
    """The adjustment of p."""

    @property
    def categories(self) -> list[str]:
        """Names of the categories in which there is a difference, in their order."""
        names: dict[str, None] = {}
        for pair in self.differences:
            names |= dict.fromkeys(pair.categories)

        return list(names)
