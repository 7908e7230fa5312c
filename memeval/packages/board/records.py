"""Content of the board: a table for each data set and protocol, a row for each run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from memeval.results import CategoryResult

JSON_VERSION = 1
LONGEST = 80
"""Characters of a name."""


class LevelResult(Struct, frozen=True):
    """Result of one level of `verify` for a package."""

    level: str
    state: str
    """`passed`, `partly` (some of it could not be compared), `not done` or `failed`."""
    words: str


class PackageData(Struct, frozen=True):
    """A package that the board shows."""

    id: str
    file: str
    who: str
    licence: str
    marks: tuple[LevelResult, ...]
    said: str
    """Whether its runs were registered beforehand, and when; `said afterwards` if not."""


class PublishedFigure(Struct, frozen=True):
    """A figure published elsewhere, shown next to a run."""

    title: str
    source: str
    system: str
    """Name of the system in the source."""
    metric: str
    value: float
    """In per cent, as all figures here."""
    own: float | None
    """The run's own figure, on the same categories."""
    verdict: str
    """`comparable`, `not comparable`, or `can't be said`: the source does not disclose it."""
    differs: tuple[str, ...]
    """Differences in the protocol."""
    untold: tuple[str, ...]
    """Facts that the source does not state."""
    disputes: tuple[str, ...]
    """Findings of others, each with its source."""


class BoardRow(Struct, frozen=True):
    """One run in a table. Shares are in [0, 1]; None if not measured."""

    key: str
    """The key that `unpack` would give it."""
    package: str
    system: str
    label: str
    """Its system, and the settings that distinguish it from others in the table."""
    kind: str
    """`baseline`, `oracle` or `system`."""
    letters: str
    """Rank groups: runs that share a letter can't be told apart; empty if it is not ranked."""
    accuracy: float | None
    low: float | None
    high: float | None
    """95 % interval, clustered by conversation."""
    difference: float | None
    """Accuracy minus that of the table's best baseline, on the questions that both scored."""
    difference_low: float | None
    difference_high: float | None
    context_tokens: float | None
    """Mean per question."""
    usd_per_1000: float | None
    """US dollars per 1,000 questions of a fresh run, including the writing of the memory."""
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    date: str
    """Day on which the run was finished."""
    valid: bool
    """False if the run is INVALID or was stopped."""
    flags: tuple[str, ...]
    categories: tuple[CategoryResult, ...]
    published: tuple[PublishedFigure, ...]
    """Figures that others published about a system of this name on this data."""


class BoardTable(Struct, frozen=True):
    """The runs on one data set under one protocol."""

    id: str
    """Twelve hex digits of the protocol."""
    dataset: str
    words: str
    """The protocol in words."""
    protocol: Mapping[str, Any]
    best_baseline: str | None
    """Key of the baseline for the differences; None if there is no baseline."""
    rows: tuple[BoardRow, ...]
    remarks: tuple[str, ...]
    """Runs that were not compared or not ranked, with reasons."""


class BoardAnswer(Struct, frozen=True):
    """An answer of one or more runs, in one or more of their repeats."""

    outcome: str
    """`right`, `wrong`, `abstained` or `not scored`."""
    text: str
    systems: Mapping[str, int]
    """Number of such answers, by the label of the run."""

    @property
    def count(self) -> int:
        return sum(self.systems.values())


class BoardQuestion(Struct, frozen=True):
    id: str
    category: str
    text: str
    gold: tuple[str, ...]
    right: int
    """Answers that the judge calls right."""
    scored: int
    is_suspect: bool
    """Whether no answer is right, and at least half of three or more wrong ones are the same."""
    answers: tuple[BoardAnswer, ...]

    @property
    def kind(self) -> str:
        """The share of right runs: `suspect`, `nobody`, `some`, `everybody`, or `not scored`."""
        if self.is_suspect:
            return "suspect"
        if not self.scored:
            return "not scored"

        return {0: "nobody", self.scored: "everybody"}.get(self.right, "some")


class DisputeNote(Struct, frozen=True):
    """A note next to the packages, shown as text."""

    file: str
    title: str
    text: str


class Setting(Struct, frozen=True):
    """A setting in which two packages differ."""

    name: str
    first: str
    second: str


class PackageDifference(Struct, frozen=True):
    """Two packages of one system that differ by more than their error, under one protocol."""

    table: str
    dataset: str
    system: str
    first: str
    """Id of the package with the higher accuracy."""
    second: str
    difference: float
    """Difference between the best run of each, on the questions that both scored."""
    low: float | None
    high: float | None
    settings: tuple[Setting, ...]


class LeftOut(Struct, frozen=True):
    """A package that the board does not show."""

    file: str
    reason: str


@dataclass(frozen=True)
class BoardData:
    """Content of `board.json`."""

    version: int
    packages: tuple[PackageData, ...]
    tables: tuple[BoardTable, ...]
    left_out: tuple[LeftOut, ...]
    disputes: tuple[DisputeNote, ...]
    apart: tuple[PackageDifference, ...]


@dataclass(frozen=True)
class Board(BoardData):
    """The contents of all files of the board."""

    questions: Mapping[str, tuple[BoardQuestion, ...]]
    """By id of the table, if the texts of its data may be shown."""
    known: int = 0
    """Number of packages whose earlier findings were used."""

    def package(self, id: str) -> PackageData:
        return next(package for package in self.packages if package.id == id)
