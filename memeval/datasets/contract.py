"""The data-set contract: metadata plus a parser that streams cases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, ClassVar

from memeval.config.classes import is_built_in
from memeval.datasets.canaries import GENERATOR, plant
from memeval.datasets.info import DatasetInfo, Excerpt, FileInfo, LoadedDataset
from memeval.datasets.own_classes import calling, checked
from memeval.datasets.sampling import SIDES, Sample, draw, questions_of, side_of
from memeval.datasets.settings import DatasetSettings
from memeval.errors import UserError
from memeval.metrics.answer import answer_metrics
from memeval.records import AnswerKind, CategoryId, EvalCase, EvalQuestion
from memeval.results import Record
from memeval.text.shown import one_line, some_of

__all__ = [
    "GRANULARITIES",
    "OBSERVATION",
    "SUMMARY",
    "Dataset",
    "DatasetInfo",
    "DatasetSettings",
    "Excerpt",
    "FileInfo",
    "LoadedDataset",
]

GRANULARITIES = ("turn", "session", "round", "event", "chunk")
"""Granularities of the conversation."""
SUMMARY, OBSERVATION = "summary", "observation"
"""Granularities of a data set's own texts about its sessions."""


class Dataset(ABC):
    """An adapter: reads one data set. `read` streams the cases; this class selects among them."""

    settings_type: ClassVar[type[DatasetSettings]] = DatasetSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.WORDS,)
    """The kinds of answer that its questions have. The first one determines the judge; choices are
    read by a rule.
    """
    has_tenants: ClassVar[bool] = False
    """Whether its cases contain sessions of another user (`EvalCase.others`)."""
    benchmark: ClassVar[str | None] = None
    """The benchmark whose official judge applies, if any."""
    granularities: tuple[str, ...] = GRANULARITIES
    """Supported granularities; others are refused."""
    irregularity_notes: Mapping[str, str] = {}
    """The note on each kind of irregularity, with the counts in braces; kinds that did not occur
    are not shown.
    """
    settings: Any
    """An instance of `settings_type`."""

    def __init__(
        self, path: Path, info: DatasetInfo, settings: DatasetSettings | None = None
    ) -> None:
        """`path` is the file or folder to read; a generated set ignores it.

        Raises `UserError` for settings that contradict each other.
        """
        self.path, self.info = Path(path), info
        self.irregularities = Counter[str]()
        """Repairs and omissions in the cases read so far, by kind; see `irregularity_notes`."""
        self._sample: Sample | None = None
        self.settings = settings or self.settings_type()
        chosen, known = self.settings.categories, self.category_names
        if chosen is not None and known and (not chosen or not set(chosen) <= set(known)):
            raise UserError(
                f"dataset.categories={list(chosen)}: must be one or more of {list(known)}",
                f"categories:  {', '.join(f'{key} {name}' for key, name in known.items())}",
            )

    @property
    def chooses(self) -> bool:
        """Whether some or all questions are answered by choosing."""
        return AnswerKind.CHOICES in self.answers

    @property
    @abstractmethod
    def category_names(self) -> Mapping[CategoryId, str]:
        """Names of all categories by id, in the order of the tables.

        Empty if only the file names them.
        """

    @property
    def headline(self) -> frozenset[CategoryId] | None:
        """Categories that count in `accuracy`; the others are reported separately.

        None if all count.
        """
        return None

    @property
    def facet_names(self) -> Mapping[str, str]:
        """Titles of further groups of questions (`EvalQuestion.facets`), by facet, for the tables
        of the report.
        """
        return {}

    @abstractmethod
    def open(self) -> LoadedDataset:
        """Finds and checks the file.

        Raises `UserError` with a hint if it is missing, damaged or has another sha256.
        """

    def _loaded(self, sha256: str, *, pinned: bool, **more: Any) -> LoadedDataset:
        """The opened data set. `more` are further fields of `LoadedDataset`."""
        fields = {"info": self.info, "path": self.path, **more}
        return LoadedDataset(sha256=sha256, pinned=pinned, **fields)

    def load(self) -> LoadedDataset:
        """Like `open`, but with the canaries included in the digest of the data."""
        with calling(self, "open"):
            loaded = self.open()

        count, seed = self.settings.canaries, self.settings.canary_seed or 0
        if not count:
            return loaded

        planted = f"{loaded.sha256} canaries {GENERATOR} {count} {seed}"
        return replace(loaded, sha256=sha256(planted.encode()).hexdigest())

    @abstractmethod
    def read(self) -> Iterator[EvalCase]:
        """Streams every case with all its questions.

        Raises `UserError` with file, record and field if a record does not parse.
        """

    def files_read(self) -> Sequence[FileInfo]:
        """The registered files of a folder that these settings read; the default reads all."""
        return self.info.files

    def expected_counts(self) -> Mapping[str, int]:
        """Expected counts of cases, sessions, turns and questions under these settings, by noun."""
        return self.info.counts

    def asks(self, question: EvalQuestion) -> bool:
        """Whether a question is asked under the settings."""
        return self.settings.categories is None or question.category in self.settings.categories

    @property
    def side(self) -> str | None:
        """The side of the split that is asked; None for both.

        A data set may use the setting `split` for other splits.
        """
        known = type(self.settings).__dataclass_fields__
        if known["split"] is not DatasetSettings.__dataclass_fields__["split"]:
            return None

        return self.settings.split if self.settings.split in SIDES else None

    def side_of(self, case_id: str) -> str:
        """The side of the split that a case is on."""
        return side_of(case_id)

    def cases(self) -> Iterator[EvalCase]:
        """The cases, each with the questions that are asked.

        A case is left out if it is on the other side of the split, or if none of its questions is
        asked. Raises `UserError` if a side of the split has no case, or if the data set lacks one
        of `question_ids`.
        """
        if self.settings.sample is not None:
            yield from self._sampled_cases()
            return

        asked: set[str] = set()
        for case in self._filtered_cases():
            asked |= {question.question_id for question in case.questions}
            yield case
            # Its turns may fill half the memory: they are not kept while the next case is read.
            del case

        missing = [name for name in self.settings.question_ids or () if name not in asked]
        # The question may exist, but be beyond a limit.
        if missing and self.settings.limit_cases is None and self.settings.limit_questions is None:
            shown = one_line(some_of(missing, 3), 300)
            raise UserError(
                f"dataset.question_ids: dataset={self.info.name} does not ask {shown}",
                "to find the ids of a run:  question_id in its records.jsonl",
            )

    @property
    def sample(self) -> Sample | None:
        """The sample that was drawn, known after `cases` ran; None without `dataset.sample`."""
        return self._sample

    def _checked_cases(self) -> Iterator[EvalCase]:
        """The cases of `read`. Raises `UserError` if a user's class fails or gives another type."""
        with calling(self, "read"):
            for case in self.read():
                yield case if is_built_in(type(self)) else checked(self, case)
                del case

    def _filtered_cases(self) -> Iterator[EvalCase]:
        """The cases with the questions that pass the settings' filters, before sampling."""
        named = self.settings.question_ids
        wanted = frozenset(named or ())
        count, side = 0, self.side
        canaries, seed = self.settings.canaries, self.settings.canary_seed or 0
        for case in self._checked_cases():
            if side not in (None, self.side_of(case.case_id)):
                continue

            whole = plant(case, canaries, seed) if canaries else case
            chosen = tuple(filter(self.asks, whole.questions))
            if named is not None:
                chosen = tuple(question for question in chosen if question.question_id in wanted)

            if not chosen:
                continue

            yield replace(whole, questions=chosen[: self.settings.limit_questions])
            del case, whole
            count += 1
            # Stop before the next case is read: one case of a large set may take minutes.
            if count == self.settings.limit_cases:
                return

        if side is not None and count == 0:
            raise UserError(
                f"dataset.split={side}: data set '{self.info.name}' has no cases to ask about "
                "in this split",
                "use:  dataset.split=all",
            )

    def _sampled_cases(self) -> Iterator[EvalCase]:
        """The cases with the questions that were drawn, and their weights."""
        # Another instance reads the whole data set first: this one must count only one pass.
        other = type(self)(self.path, self.info, replace(self.settings, sample=None))
        other.open()
        questions = questions_of(other.cases())
        assert self.settings.sample is not None
        self._sample = draw(questions, self.settings.sample, self.settings.sample_seed)

        weights = self._sample.weights
        for case in self._filtered_cases():
            drawn = []
            for question in case.questions:
                weight = weights.get(question.question_id)
                if weight is not None:
                    drawn.append(replace(question, weight=weight))

            if drawn:
                yield replace(case, questions=tuple(drawn))

    def judged_by_model(self, judge: str) -> Sequence[str]:
        """The asked categories that this judge passes to a language model."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """Repairs and omissions in the cases read so far: one line for each kind, with its count.
        Called after `cases` or `read` ran.
        """
        counts = {"settings": self.settings, **self.irregularities}
        return tuple(
            note.format_map(counts)
            for kind, note in self.irregularity_notes.items()
            if self.irregularities[kind]
        )

    def repairs(self) -> Iterable[str]:
        """Every repair of a dirty record, one line each, for `data verify`, after `read` ran."""
        return ()

    def answer_metrics(self, answer: str, question: EvalQuestion) -> Mapping[str, float | None]:
        """An answer's free metrics by name; by default, `memeval.metrics.registry.metrics`."""
        return answer_metrics(answer, question)

    def ranking_metrics(
        self,
        question: EvalQuestion,
        ranking: Sequence[Sequence[str]],
        session_of: Mapping[str, str],
    ) -> Mapping[str, float | None]:
        """Retrieval metrics of the data set's own protocol for one question, by name; `measures`
        averages them.

        `ranking` holds the turn ids of each chunk, best first; `session_of` maps every turn of the
        case to its session.
        """
        return {}

    def write(self, file: IO[str]) -> tuple[int, int]:
        """Writes generated or derived data record by record; returns the numbers of cases and
        questions.

        The default raises `UserError`, because most data sets already are files.
        """
        raise UserError(f"data set '{self.info.name}' can't be written as a file")

    def write_from(self, file: IO[str], sources: Sequence[Path]) -> tuple[str, ...]:
        """Writes the data set's file from published files or folders in other formats.

        Returns notes for the user, one line each. The default raises `UserError`.
        """
        raise UserError(
            f"data set '{self.info.name}' can't be made from other files",
            f"to write it as it is:  python -m memeval data make {self.info.name} FILE",
        )

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        """Metrics of the data set's own protocol over the records of a repeat, by stable names."""
        return {}

    @property
    def measure_names(self) -> Collection[str] | None:
        """Names of everything that `measures` may return; a name that ends in `/` covers all names
        that begin with it.

        `objective` is checked against them before the run. None, the default of a class that
        overrides `measures`: the names are unknown before there are records, so `objective` is
        checked only at the end.
        """
        return () if type(self).measures is Dataset.measures else None
