"""Answers that another program gave, judged and reported like any run."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memeval.datasets.io.fields import unique_fields
from memeval.errors import MemevalError, UserError
from memeval.pipeline.execute.memories import MemorySource
from memeval.pipeline.execute.question import failed_answer
from memeval.pipeline.execute.source import AnswerSource, CaseAnswers
from memeval.pipeline.execute.turns import CaseTurns
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.records import EvalCase, EvalQuestion, Status
from memeval.results import AnswerRow, TextStore
from memeval.results.files import reading
from memeval.results.judge import RECORDED
from memeval.systems.external.ranked import Rankings
from memeval.text.shown import one_line, some_of

MOST_NAMED = 10
"""How many ids a note names; the others are counted."""


UNKNOWN = "unknown: ids that are not in the data set, left out"
NOT_ASKED = "not asked: answers to questions that were not chosen, left out"
REPEATED = "repeated: more rows with the same id; the first one counts"
MISSING = "missing: questions without a row, counted as failed"
"""Findings on the ids of a file."""


class VerdictMembers(Struct, frozen=True):
    """Verdict members of a row, not yet parsed."""

    line: int
    content: Mapping[str, Any]


_VERDICT_MEMBERS = ("label", "labels", "judge", "autoeval_label", "recorded_judge_labels")
"""Members of a row that record its verdict and who gave it."""


class Hypotheses(Struct, frozen=True):
    """A file of answers, read."""

    path: Path
    sha256: str
    answers: Mapping[str, str | None]
    """By question id, from its first row; None without an answer (a blank string is an answer)."""
    repeated: tuple[str, ...]
    """Ids of rows whose id occurred in an earlier row."""
    verdicts: Mapping[str, VerdictMembers] = field(default_factory=dict)
    """By question id, for the rows that record a verdict."""


def read_hypotheses(path: Path) -> Hypotheses:
    """Reads rows `{question_id, hypothesis}`. Raises `UserError` with file, line and field."""
    with reading(path):
        content = path.read_bytes()

    answers: dict[str, str | None] = {}
    verdicts: dict[str, VerdictMembers] = {}
    repeated = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue

        question_id, hypothesis, row = _read_row(path, number, line)
        if question_id in answers:
            repeated.append(question_id)
            continue

        answers[question_id] = hypothesis
        recorded = {name: row[name] for name in _VERDICT_MEMBERS if name in row}
        if recorded:
            verdicts[question_id] = VerdictMembers(number, recorded)

    if not answers:
        raise UserError(
            f"{path} is empty",
            "rows look like:  {" + '"question_id": "conv-26/q0", "hypothesis": "7 May 2023"}',
        )

    return Hypotheses(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        answers=answers,
        repeated=tuple(repeated),
        verdicts=verdicts,
    )


class _Number(str):
    """A number as the file writes it."""


def _as_written(text: str) -> _Number | None:
    """A number as written; None if it is too large for a float, such as 1e400."""
    return _Number(text) if math.isfinite(float(text)) else None


_DECODER = json.JSONDecoder(
    parse_int=_Number,
    parse_float=_as_written,
    parse_constant=lambda _: None,
    object_pairs_hook=unique_fields,
)
"""Keeps numbers as they are written, so that 7.50 stays "7.50"; reads NaN and Infinity as null, and
refuses a duplicate field.
"""


def _read_row(path: Path, number: int, line: bytes) -> tuple[str, str | None, dict[str, Any]]:
    """Question, answer, and the whole row."""
    where = f"{one_line(path)}, line {number}"
    try:
        # Editors on Windows put a byte order mark at the beginning of a file.
        row: Any = _DECODER.decode(line.decode("utf-8-sig" if number == 1 else "utf-8").strip())
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON ({one_line(error)})") from error

    if not isinstance(row, dict):
        raise UserError(f"{where}: not an object with question_id and hypothesis")

    question_id, hypothesis = row.get("question_id"), row.get("hypothesis", "")
    # A `_Number` is also a str: 7 is refused as an id, but fine as an answer.
    if not isinstance(question_id, str) or isinstance(question_id, _Number):
        raise UserError(f"{where}: question_id is missing, or is not a string")
    if "hypothesis" not in row:
        raise UserError(f"{where}: hypothesis is missing")

    if hypothesis is not None and not isinstance(hypothesis, str):
        raise UserError(
            f"{where}: hypothesis must be a string or a number, but is {_TYPES[type(hypothesis)]}"
        )

    # JSON may contain an escaped lone surrogate, which would fail only when the row is stored.
    try:
        f"{question_id}{hypothesis}".encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"{where}: a lone surrogate (half a character), which can't be stored"
        ) from error

    return question_id, None if hypothesis is None else str(hypothesis), row


_TYPES = {bool: "true or false", list: "a list", dict: "an object"}


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
        self._dataset, self._answers = cell.dataset, hypotheses.answers
        recorded = cell.config.judge.name == RECORDED
        self._blank_outcome = "whose recorded verdicts count" if recorded else "counted as wrong"
        self._repeated, self._known, self._only_listed = hypotheses.repeated, known, only_listed
        self._asked: list[str] = []
        self._left_out = 0

    def cases(self) -> Iterator[EvalCase]:
        for case in self._dataset.cases():
            questions = case.questions
            if self._only_listed:
                questions = tuple(
                    question for question in questions if question.question_id in self._answers
                )
                self._left_out += len(case.questions) - len(questions)

            # A case without listed questions is not opened.
            if questions or not self._only_listed:
                self._asked += [question.question_id for question in questions]
                yield replace(case, questions=questions)

    async def open(self, case: EvalCase, seed: int) -> CaseAnswers:
        return self

    async def answer(self, question: EvalQuestion, turns: CaseTurns, texts: TextStore) -> AnswerRow:
        question_id = question.question_id
        text = self._answers.get(question_id)
        if text is not None:
            return AnswerRow(id=question_id, status=Status.OK, hypothesis=text)

        listed = question_id in self._answers
        what = "its row has no answer" if listed else "the file has no row for it"
        return failed_answer(question_id, Status.ANSWER_FAILED, MemevalError(what))

    def notes(self) -> tuple[str, ...]:
        listed, asked = self._answers, dict.fromkeys(self._asked)
        answers = {
            question_id: listed[question_id] for question_id in asked if question_id in listed
        }
        blank = [
            question_id
            for question_id, text in answers.items()
            if text is not None and not text.strip()
        ]
        findings = {
            UNKNOWN: [question_id for question_id in listed if question_id not in self._known],
            NOT_ASKED: [
                question_id
                for question_id in listed
                if question_id in self._known and question_id not in asked
            ],
            REPEATED: self._repeated,
            MISSING: [question_id for question_id in asked if question_id not in listed],
            "empty: rows without an answer, counted as failed": [
                question_id for question_id, text in answers.items() if text is None
            ],
            f"blank: rows with a blank answer, {self._blank_outcome}": blank,
        }
        notes = [_count_ids(what, ids) for what, ids in findings.items() if ids]
        if self._only_listed:
            notes.append(
                "partial: only the questions listed in the file are asked, "
                f"{self._left_out} others are left out"
            )

        return tuple(notes)


class RankedAnswers(MemorySource):
    """The reader's answers from search results in a file; ids without a question are counted."""

    def __init__(self, cell: Cell, models: Models, rankings: Rankings, known: frozenset[str]):
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
            UNKNOWN: [row for row in rows if row not in self._known],
            NOT_ASKED: [row for row in rows if row in self._known and row not in self._asked],
            REPEATED: self._rankings.repeated,
            MISSING: sorted(self._asked - rows.keys()),
        }
        counted = [_count_ids(what, ids) for what, ids in findings.items() if ids]
        return (*super().notes(), *counted)


def _count_ids(what: str, ids: Iterable[str]) -> str:
    counted = Counter(ids)
    return f"{counted.total()} {what}: {some_of(list(counted), MOST_NAMED)}"
