"""What the page shows, as frozen records: the template and the script see nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memeval.report.plots.model import Panel


@dataclass(frozen=True)
class Share:
    """A share in [0, 1] with its 95 % interval; None where it was not measured."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Figure:
    """A figure of a run under its heading."""

    title: str
    hint: str
    value: float | None
    before: str
    text: str
    """Empty if it is left out."""
    after: str


@dataclass(frozen=True)
class CellData:
    """One run, as the tables show it."""

    key: str
    label: str
    """The settings in which it differs from the others; its short name where it is alone."""
    name: str
    command: str
    judge: str
    accuracy: Share
    std: float | None
    """Sample standard deviation over repeats."""
    repeats: int
    figures: Mapping[str, float | None]
    """Metrics by the names of docs/metrics.md."""
    columns: tuple[Figure, ...]
    """Its row in the table of several cells, beside accuracy, differences and counts."""
    tiles: tuple[Figure, ...]
    """The same of a cell that is alone."""
    flags: tuple[str, ...]
    notes: tuple[str, ...]
    statuses: Mapping[str, int]
    scored: int
    asked: int
    valid: bool
    stopped: bool = False
    """Whether the run ended before all of its questions were done."""
    found_nothing: bool = False
    """Whether no question got anything from the memory."""
    corrected: str = ""
    """Corrected for the judge's error, in per cent; empty where no labels were given."""


@dataclass(frozen=True)
class CategoryData:
    """One category of the questions, with a share for each cell, in the order of the cells."""

    name: str
    n: int
    headline: bool
    """Whether it enters the accuracy."""
    shares: tuple[Share | None, ...]
    """None for a cell that was not asked these questions."""


@dataclass(frozen=True)
class ConversationData:
    """One conversation: what a cell got right of it, and how it differs from the baseline there."""

    name: str
    n: int
    """Questions that count in the accuracy."""
    accuracies: tuple[float | None, ...]
    differences: tuple[float | None, ...]
    """Over the questions that both cells scored; None for the baseline itself."""


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
    """What a comparison found between the cells."""

    metric: str
    unit: str
    scale: float
    """What values are multiplied by where they are shown."""
    sentences: tuple[str, ...]
    """What the page says first."""
    baseline: str | None
    """Key of its run; None where all pairs are compared."""
    differences: tuple[DifferenceData, ...]
    letters: Mapping[str, str]
    """By key: cells that share a letter can't be told apart."""
    remarks: tuple[str, ...]
    """What a reader must know of the comparison: another judge, questions of one cell only."""
    adjusted_how: str = "for all rows together"
    """How p is adjusted."""

    @property
    def categories(self) -> list[str]:
        """Names of the categories in which there is a difference, in their order."""
        return list(dict.fromkeys(row.name for pair in self.differences for row in pair.categories))


@dataclass(frozen=True)
class SettingData:
    """A setting in which the cells differ; of a single cell, any setting."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class QuestionData:
    """The questions, as the script reads them."""

    index: Mapping[str, Any]
    """What lists and filters need."""
    blocks: tuple[str, ...]
    """The rest, compressed: a block holds the questions of one or more conversations."""


@dataclass(frozen=True)
class PageData:
    """All that the page shows."""

    title: str
    dataset: str
    sentences: tuple[str, ...]
    judges: tuple[str, ...]
    protocol: str
    made_at: str
    cells: tuple[CellData, ...]
    baseline: int
    """Position of the cell that the others are compared with."""
    comparison: ComparisonData | None
    categories: tuple[CategoryData, ...]
    conversations: tuple[ConversationData, ...]
    settings: tuple[SettingData, ...]
    frontiers: Sequence[Panel]
    """Accuracy against what it costs."""
    curves: Sequence[Panel]
    """Accuracy against each number that the cells vary."""
    questions: QuestionData
