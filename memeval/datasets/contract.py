"""The data-set contract: metadata plus a parser that streams cases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, ClassVar

from memeval.config.schema import RUN, RUNTIME, at
from memeval.errors import UserError
from memeval.metrics.answer import answer_metrics
from memeval.records import CategoryId, EvalCase, EvalQuestion

FREE_TEXT_JUDGES = ("keyword", "exact_match", "token_f1", "llm", "mem0")
"""Judges of answers in words, the default of such data sets first."""

GRANULARITIES = ("turn", "session", "round", "chunk")

Record = Mapping[str, Any]
"""A row of `records.jsonl`."""


@dataclass(frozen=True)
class FileInfo:
    """One file of a data set that is a folder."""

    name: str
    """Below the data set's folder."""
    url: str | None
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class Excerpt:
    """A registered part of a data set's file, taken where the whole is not on the machine; every report of it says so."""

    file: str
    """Path below the data folder."""
    sha256: str
    what: str
    """What part of the whole it is: `31 of the 500 questions, with their whole histories`."""


@dataclass(frozen=True)
class DatasetInfo:
    """What the registry knows of a data set."""

    name: str
    title: str
    file: str
    """Path below the data folder, `<data set>/<file>`; a folder where `files` names what is in it; empty for a set that is generated."""
    url: str | None
    """Where `data fetch` gets it; None for a set that ships or is generated, and for a folder, whose `files` have their own."""
    sha256: str | None
    size_bytes: int | None
    licence: str
    citation: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """Expected counts by noun: cases, sessions, turns, questions."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """sha256 of known edited copies, and what they are: recognised, and refused by that name."""
    files: tuple[FileInfo, ...] = ()
    """What the folder holds, for a data set of several files."""
    excerpts: tuple[Excerpt, ...] = ()
    by_hand: str = ""
    """How to get what can't be downloaded as it is."""


@dataclass(frozen=True)
class LoadedDataset:
    """A data set opened for a run."""

    info: DatasetInfo
    path: Path
    sha256: str
    """Of the file; of the folder's files together; for a generated set of all that decides what is generated."""
    pinned: bool
    """False where the file is not the registered one and `allow_unpinned` let it in; reports say so."""
    notes: tuple[str, ...] = ()
    """What the adapter repaired or left out, counted, a line each."""
    excerpt: bool = False
    """True where the file is a registered part of the whole: every table says so."""
    derived: bool = False
    """True where the rows were made from another data set's: every table says so."""


@dataclass(frozen=True)
class DatasetSettings:
    """What every data set can be asked for. An adapter's own settings are a subclass; each field says its stage with `at`."""

    path: str | None = at(RUNTIME)
    """File to read; None looks it up below the data folder."""
    categories: tuple[int | str, ...] | None = at(RUN)
    """Ids of the categories that are asked; None asks all."""
    limit_cases: int | None = at(RUN)
    """First so many cases, of those in which something is asked."""
    limit_questions: int | None = at(RUN)
    """First so many questions of each case."""
    allow_unpinned: bool = at(RUNTIME, False)

    def __post_init__(self) -> None:
        for name in ("limit_cases", "limit_questions"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise UserError(f"dataset.{name} must be at least 1, not {limit}")


class Dataset(ABC):
    """One adapter. `read` streams the cases; the base chooses among them."""

    settings_type: ClassVar[type[DatasetSettings]] = DatasetSettings
    judges: ClassVar[tuple[str, ...]] = FREE_TEXT_JUDGES
    """Judges that apply; `judge=auto` takes the first, which needs no model."""
    granularities: tuple[str, ...] = GRANULARITIES
    """Those that mean something here; others are refused."""
    chooses: ClassVar[bool] = False
    """Whether (some) questions are answered by choosing."""
    settings: Any
    """An instance of `settings_type`."""

    def __init__(
        self, path: Path, info: DatasetInfo, settings: DatasetSettings | None = None
    ) -> None:
        """`path` is the file or folder to read; a set that is generated ignores it. Raises `UserError` for settings that make no sense."""
        self.path, self.info = Path(path), info
        self.settings = settings or self.settings_type()
        chosen, known = self.settings.categories, self.category_names
        if chosen is not None and known and (not chosen or not set(chosen) <= set(known)):
            raise UserError(
                f"dataset.categories={list(chosen)}: takes one or more of {list(known)}."
            )

    @property
    @abstractmethod
    def category_names(self) -> Mapping[CategoryId, str]:
        """Names of all categories by id, in the order in which tables show them; empty where only the file tells."""

    @property
    def headline(self) -> frozenset[CategoryId] | None:
        """Categories that enter `accuracy`, the rest is reported apart; None where all do."""
        return None

    @property
    def facet_names(self) -> Mapping[str, str]:
        """Titles of further groupings of the questions (`EvalQuestion.facets`), by facet, for the tables of the report."""
        return {}

    @abstractmethod
    def open(self) -> LoadedDataset:
        """Finds and checks the file. Raises `UserError` with the way out where it is missing, damaged or of another hash."""

    @abstractmethod
    def read(self) -> Iterator[EvalCase]:
        """Streams every case with all its questions. Raises `UserError` naming file, record and field where a record does not parse."""

    def asks(self, question: EvalQuestion) -> bool:
        """Whether a question is asked under the settings."""
        return self.settings.categories is None or question.category in self.settings.categories

    def cases(self) -> Iterator[EvalCase]:
        """The cases, each with the questions that are asked; those of whose questions none is asked are left out."""
        count = 0
        for case in self.read():
            chosen = tuple(filter(self.asks, case.questions))
            if case.questions and not chosen:
                continue
            yield replace(case, questions=chosen[: self.settings.limit_questions])
            count += 1
            if count == self.settings.limit_cases:
                return

    def judged_by_model(self, judge: str) -> Sequence[str]:
        """Names of the categories, of those that are asked, for which a judge that is no model itself asks one."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """What was repaired or left out in the cases read so far, counted, a line each; asked after `cases` or `read` ran."""
        return ()

    def repairs(self) -> Iterable[str]:
        """Every repair of a dirty record by name, a line each, for `data verify`; asked after `read` ran."""
        return ()

    def answer_metrics(self, answer: str, question: EvalQuestion) -> Mapping[str, float | None]:
        """The free metrics of an answer, by name; those of `memeval.metrics.answer.METRICS`."""
        return answer_metrics(answer, question)

    def ranking_metrics(
        self,
        question: EvalQuestion,
        ranking: Sequence[Sequence[str]],
        session_of: Mapping[str, str],
    ) -> Mapping[str, float | None]:
        """Retrieval metrics of the data set's own protocol for one question, by name, to be averaged by `measures`.

        `ranking` holds the turn ids of each unit, best first; `session_of` every turn of the case with its session.
        """
        return {}

    def write(self, file: IO[str]) -> tuple[int, int]:
        """Writes what is generated or derived, a record at a time; returns how many cases and questions there were.

        Raises `UserError` where there is nothing to write: the default, as most data sets are files already.
        """
        raise UserError(
            f"data set '{self.info.name}' can't be written as a file: "
            "it is neither generated nor derived"
        )

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        """Metrics of the data set's own protocol over the records of one repeat, by stable names."""
        return {}
