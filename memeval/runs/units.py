"""The units of work of a sweep, each counted once for all cells that need it."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field

from memeval.config.schema import ANSWER, JUDGE, PREPARE
from memeval.pipeline.execute.repeat import answers_header, verdicts_header
from memeval.pipeline.execute.rows import is_final
from memeval.pipeline.execute.timeline import ids_until
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.records import EvalCase
from memeval.results import AnswerRow, IngestRow, VerdictRow
from memeval.results.files import MANIFEST
from memeval.results.rows import answer_or_ingest
from memeval.results.store import Json, Parse, R, SoundRows, read_row_file
from memeval.runs.plan import PlannedCell
from memeval.text.names import digest_name

T = TypeVar("T")


class CaseCache:
    """The cases of the data sets of a sweep, each data set read once."""

    def __init__(self) -> None:
        self._cases: dict[int, tuple[object, tuple[EvalCase, ...]]] = {}
        self._ids: dict[int, tuple[frozenset[str], frozenset[str]]] = {}

    def of(self, cell: Cell) -> tuple[EvalCase, ...]:
        """The cases that a cell asks about."""
        key = id(cell.dataset)
        if key not in self._cases:
            # The data set is kept as well, so that its id is not reused.
            self._cases[key] = cell.dataset, tuple(cell.dataset.cases())

        return self._cases[key][1]

    def ids_of(self, cell: Cell) -> tuple[frozenset[str], frozenset[str]]:
        """The ids of the memories and of the questions that a cell asks about."""
        cases, key = self.of(cell), id(cell.dataset)
        if key not in self._ids:
            memories: set[str] = set()
            questions: set[str] = set()
            for case in cases:
                memories.update(ids_until(case))
                questions.update(question.question_id for question in case.questions)

            self._ids[key] = frozenset(memories), frozenset(questions)

        return self._ids[key]


class StoredRows:
    """The rows that are on disk, each file read once."""

    def __init__(self) -> None:
        self._answers: dict[Path, SoundRows[AnswerRow | IngestRow]] = {}
        self._verdicts: dict[Path, SoundRows[VerdictRow]] = {}

    def answers(self, cell: Cell, seed: int) -> SoundRows[AnswerRow | IngestRow]:
        path, header = cell.answers_file(seed), answers_header(cell.keys(seed), seed)
        return _read_once(self._answers, path, lambda: _read(path, header, answer_or_ingest))

    def verdicts(self, cell: Cell, seed: int) -> SoundRows[VerdictRow]:
        path, header = cell.verdicts_file(seed), verdicts_header(cell.keys(seed), seed)
        return _read_once(self._verdicts, path, lambda: _read(path, header, VerdictRow.from_json))


def _read_once(cache: dict[Path, T], path: Path, read: Callable[[], T]) -> T:
    if path not in cache:
        cache[path] = read()

    return cache[path]


def _read(path: Path, header: Json, parse: Parse[R]) -> SoundRows[R]:
    try:
        return read_row_file(path, header, parse)
    except OSError:
        # No file yet; an unreadable one is reported by the run.
        return SoundRows()


class StageUnits(Struct):
    asked: dict[str, frozenset[str]] = field(default_factory=dict)
    """Ids of memories or questions by the key of the stage."""
    done: dict[str, frozenset[str]] = field(default_factory=dict)

    def add(self, key: str, ids: frozenset[str], done: frozenset[str]) -> None:
        """Adds the units that a cell requests, and the existing ones."""
        # Most keys have the same ids: one set serves all of them.
        for known, more in ((self.asked, ids), (self.done, done)):
            known[key] = more if known.get(key) in (None, more) else known[key] | more

    @property
    def count(self) -> int:
        return sum(map(len, self.asked.values()))

    @property
    def finished(self) -> int:
        return sum(map(len, self.done.values()))


class Units:
    """The units of a sweep by stage."""

    def __init__(self) -> None:
        self.cases, self.stored = CaseCache(), StoredRows()
        self.by_stage = {PREPARE: StageUnits(), ANSWER: StageUnits(), JUDGE: StageUnits()}

    def add(self, planned: PlannedCell) -> None:
        """Adds the units of a cell. Units that another cell shares are counted once."""
        cell = planned.cell
        memories, questions = self.cases.ids_of(cell)
        for seed in cell.seeds:
            keys = cell.keys(seed)
            if planned.is_finished:
                prepared, answered, judged = memories, questions, questions
            else:
                prepared = self._prepared(cell, seed, memories)
                answered, judged = self._rows(cell, seed, questions)

            self.by_stage[PREPARE].add(keys.prepare, memories, prepared)
            self.by_stage[ANSWER].add(keys.answer, questions, answered)
            if not retrieves_only(cell.config):
                self.by_stage[JUDGE].add(keys.judge, questions, judged)

    def _prepared(self, cell: Cell, seed: int, memories: Collection[str]) -> frozenset[str]:
        if cell.redoes(PREPARE):
            return frozenset()

        folder = cell.memory_folder(seed)
        if not folder.is_dir():
            return frozenset()

        saved = [name for name in memories if (folder / digest_name(name) / MANIFEST).is_file()]
        return frozenset(saved)

    def _rows(
        self, cell: Cell, seed: int, questions: Collection[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The questions that are answered, and those that are judged."""
        if cell.redoes(ANSWER):
            return frozenset(), frozenset()

        answers = self.stored.answers(cell, seed).rows
        final = []
        asked = questions if answers else ()
        for question_id in asked:
            row = answers.get(question_id)
            if isinstance(row, AnswerRow) and is_final(row):
                final.append(question_id)

        answered = frozenset(final)
        if cell.redoes(JUDGE):
            return answered, frozenset()

        verdicts = self.stored.verdicts(cell, seed).rows
        judged = [question_id for question_id in answered if is_final(verdicts.get(question_id))]
        return answered, frozenset(judged)
