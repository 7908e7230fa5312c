"""Content of the page, as frozen records: the template and the script see nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from memeval.report.compared import ComparisonData
from memeval.report.plots.model import Panel
from memeval.results import RunSummary
from memeval.results.summary import Share


@dataclass(frozen=True)
class ShownFigure:
    """A figure of a run under its heading."""

    title: str
    hint: str
    value: float | None
    before: str
    text: str
    """Empty if it is left out."""
    after: str


class CellData(Struct, frozen=True):
    """One run, as the tables show it."""

    summary: RunSummary
    label: str
    """The settings in which it differs from the others; the run's name if it is the only one."""
    command: str
    judge: str
    accuracy: Share
    columns: tuple[ShownFigure, ...]
    """Figures for the table of several cells, besides accuracy, differences and counts."""
    tiles: tuple[ShownFigure, ...]
    """Figures for a page about a single cell."""
    flags: tuple[str, ...]
    notes: tuple[str, ...]
    scored: int
    asked: int
    corrected: str
    """Accuracy corrected for the judge's error, in per cent; empty if no labels were given."""


class CategoryData(Struct, frozen=True):
    """One category of the questions, with a share for each cell, in the order of the cells."""

    name: str
    n: int
    headline: bool
    """Whether it enters the accuracy."""
    shares: tuple[Share | None, ...]
    """None for a cell that was not asked these questions."""


class ConversationData(Struct, frozen=True):
    """One conversation: a cell's share of right answers, and its difference from the baseline."""

    name: str
    n: int
    """Questions that count in the accuracy."""
    accuracies: tuple[float | None, ...]
    differences: tuple[float | None, ...]
    """Over the questions that both cells scored; None for the baseline itself, and for cells that
    may not be compared with it.
    """


class QuestionData(Struct, frozen=True):
    """The questions, as the script reads them."""

    index: Mapping[str, Any]
    """Fields that lists and filters need."""
    blocks: tuple[str, ...]
    """The other fields, compressed: a block contains the questions of one or more conversations."""


class PageData(Struct, frozen=True):
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
    settings: Mapping[str, Sequence[str]]
    """Values of the settings in which the cells differ, by name; for a single cell, of all."""
    frontiers: Sequence[Panel]
    """Accuracy against cost."""
    curves: Sequence[Panel]
    """Accuracy against each number that the cells vary."""
    questions: QuestionData
