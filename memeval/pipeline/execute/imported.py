"""Another program's answers, judged and reported like any run."""

import json
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memeval.datasets.io.fields import unique_fields
from memeval.errors import MemevalError
from memeval.pipeline.execute.memories import MemorySource
from memeval.pipeline.execute.question import failed_answer
from memeval.pipeline.execute.source import AnswerSource, CaseAnswers
from memeval.pipeline.execute.turns import CaseTurns
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.records import AnswerKind, EvalCase, EvalQuestion, Status
from memeval.results import AnswerRow, TextStore
from memeval.results.files import reading
from memeval.results.judge import RECORDED
from memeval.systems.external.ranked import QuestionRow, QuestionRows, Rankings, read_rows
from memeval.text.shown import some_of
from memeval.text.typed import convert

MAX_NAMED = 10
"""Maximum ids that a note names; the others are counted."""


ROW = 'one row per line:  {"question_id": "conv-26/q0", "hypothesis": "7 May 2023"}'
UNKNOWN = "unknown: ids that are not in the data set, left out"
NOT_ASKED = "not asked: answers to questions that were not chosen, left out"
REPEATED = "repeated: more rows with the same id; the first one counts"
MISSING = "missing: questions without a row, counted as failed"
"""Findings on the ids of a file."""


class HypothesisRow(QuestionRow, frozen=True):
    """A line of the file; all members but the id and this one record verdicts."""

    hypothesis: str | None
    """None without an answer; a blank string is an answer."""
    label: Any = None
    labels: Any = None
    judge: Any = None
    autoeval_label: Any = None
    recorded_judge_labels: Any = None

    def __post_init__(self) -> None:
        # JSON may contain an escaped lone surrogate, which would fail only when it is stored.
        try:
            f"{self.question_id}{self.hypothesis}".encode()
        except UnicodeEncodeError:
            raise ValueError("a lone surrogate (half a character) can't be stored") from None


Hypotheses = QuestionRows[HypothesisRow]


def read_hypotheses(path: Path) -> Hypotheses:
    """Reads rows `{question_id, hypothesis}`. Raises `UserError` with file, line and field."""
    with reading(path):
        content = path.read_bytes()

    return read_rows(path, content, _read_row, ROW)


def _read_row(line: bytes) -> HypothesisRow:
    return convert(_DECODER.decode(line.decode().strip()), HypothesisRow)


def _as_written(text: str) -> str | None:
    """A number as written; None if it is too large for a float, such as 1e400."""
    return text if math.isfinite(float(text)) else None


_DECODER = json.JSONDecoder(
    parse_int=str,
    parse_float=_as_written,
    parse_constant=lambda _: None,
    object_pairs_hook=unique_fields,
)
"""Keeps numbers as they are written, so that 7.50 stays "7.50"; reads NaN and Infinity as null, and
refuses a duplicate field.
"""


class ImportedAnswers(AnswerSource, CaseAnswers):
    """Answers from a file; ids without a question are counted and named."""

    def __init__(
        self,
        cell: Cell,
        hypotheses: Hypotheses,
        known: frozenset[str],
        *,
        only_listed: bool = False,
    ) -> None:
        """`known` has all question ids of the data; `only_listed` asks only those with a row."""
        self._dataset, self._rows = cell.dataset, hypotheses.rows
        self._blank_outcome = "counted as wrong"
        if AnswerKind.CHOICES in self._dataset.answers:
            self._blank_outcome += ", or as unparsed if the question has choices"
        if cell.config.judge.name == RECORDED:
            self._blank_outcome = "whose recorded verdicts count"

        self._repeated, self._known, self._only_listed = hypotheses.repeated, known, only_listed
        self._asked: list[str] = []
        self._left_out = 0

    def cases(self) -> Iterator[EvalCase]:
        for case in self._dataset.cases():
            questions = []
            for question in case.questions:
                if self._only_listed and question.question_id not in self._rows:
                    self._left_out += 1
                else:
                    questions.append(question)
                    self._asked.append(question.question_id)

            # A case without listed questions is not opened.
            if questions or not self._only_listed:
                yield replace(case, questions=tuple(questions))

    async def open(self, case: EvalCase, seed: int) -> CaseAnswers:
        return self

    async def answer(self, question: EvalQuestion, turns: CaseTurns, texts: TextStore) -> AnswerRow:
        question_id = question.question_id
        row = self._rows.get(question_id)
        if row is not None and row.hypothesis is not None:
            return AnswerRow(id=question_id, status=Status.OK, hypothesis=row.hypothesis)

        reason = "the file has no row for it" if row is None else "its row has no answer"
        return failed_answer(question_id, Status.ANSWER_FAILED, MemevalError(reason))

    def notes(self) -> tuple[str, ...]:
        asked = dict.fromkeys(self._asked)
        missing, empty, blank = [], [], []
        for question_id in asked:
            row = self._rows.get(question_id)
            if row is None:
                missing.append(question_id)
            elif row.hypothesis is None:
                empty.append(question_id)
            elif not row.hypothesis.strip():
                blank.append(question_id)

        findings = {
            **_unasked(self._rows, self._known, asked),
            REPEATED: self._repeated,
            MISSING: missing,
            "empty: rows without an answer, counted as failed": empty,
            f"blank: rows with a blank answer, {self._blank_outcome}": blank,
        }
        notes = list(_notes_on(findings))
        if self._only_listed:
            notes.append(
                "partial: only the questions listed in the file are asked, "
                f"{self._left_out} others are left out"
            )

        return tuple(notes)


class RankedAnswers(MemorySource):
    """The reader's answers from search results in a file; ids without a question are counted."""

    def __init__(
        self, cell: Cell, models: Models, rankings: Rankings, known: frozenset[str]
    ) -> None:
        """`known` contains the ids of all questions of the data set."""
        super().__init__(cell, models)
        self._rankings, self._known = rankings, known
        self._asked: set[str] = set()

    def cases(self) -> Iterator[EvalCase]:
        for case in super().cases():
            self._asked.update(question.question_id for question in case.questions)
            yield case

    def notes(self) -> tuple[str, ...]:
        rows = self._rankings.rows
        findings = {
            **_unasked(rows, self._known, self._asked),
            REPEATED: self._rankings.repeated,
            MISSING: sorted(self._asked - rows.keys()),
        }
        return (*super().notes(), *_notes_on(findings))


def _unasked(
    listed: Iterable[str], known: frozenset[str], asked: Container[str]
) -> dict[str, Sequence[str]]:
    """The ids in a file that no question has, and those of questions that were not asked."""
    unknown, not_asked = [], []
    for question_id in listed:
        if question_id not in known:
            unknown.append(question_id)
        elif question_id not in asked:
            not_asked.append(question_id)

    return {UNKNOWN: unknown, NOT_ASKED: not_asked}


def _notes_on(findings: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for finding, ids in findings.items():
        if ids:
            yield f"{len(ids)} {finding}: {some_of(list(dict.fromkeys(ids)), MAX_NAMED)}"
