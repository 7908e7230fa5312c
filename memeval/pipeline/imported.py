"""Answers that another program gave, judged and reported like any run."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memeval.errors import UserError
from memeval.pipeline.cell import Cell
from memeval.pipeline.memory import Memory
from memeval.pipeline.progress import Progress
from memeval.pipeline.question import answered, failed
from memeval.pipeline.run import CellRun, Repeat
from memeval.pipeline.window import Window
from memeval.records import Answer, EvalCase, EvalQuestion, Status

NAMED = 10
"""Ids that a note names before it only counts."""


@dataclass(frozen=True)
class Hypotheses:
    """A file of answers, read."""

    path: Path
    sha256: str
    answers: Mapping[str, str | None]
    """By question id, the first row of an id; None where the row holds no answer."""
    repeated: tuple[str, ...]
    """Ids of further rows of an id that came before."""


def read_hypotheses(path: Path) -> Hypotheses:
    """Reads JSON lines `{question_id, hypothesis}`. Raises `UserError` naming file, line and field where a row can't be read."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}") from error
    answers: dict[str, str | None] = {}
    repeated = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        question_id, hypothesis = _row(path, number, line)
        if question_id in answers:
            repeated.append(question_id)
        else:
            answers[question_id] = hypothesis
    if not answers:
        raise UserError(f"{path} is empty", "rows look like:  {" + '"question_id": "conv-26/q0", "hypothesis": "7 May 2023"}')
    return Hypotheses(path, hashlib.sha256(content).hexdigest(), answers, tuple(repeated))


def _row(path: Path, number: int, line: bytes) -> tuple[str, str | None]:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}, line {number}: not JSON ({error})") from error
    if not isinstance(row, dict):
        raise UserError(f"{path}, line {number}: not an object with question_id and hypothesis")
    question_id, hypothesis = row.get("question_id"), row.get("hypothesis", "")
    if not isinstance(question_id, str):
        raise UserError(f"{path}, line {number}: question_id is missing or no text")
    if "hypothesis" not in row:
        raise UserError(f"{path}, line {number}: hypothesis is missing")
    if hypothesis is not None and (isinstance(hypothesis, bool) or not isinstance(hypothesis, str | int | float)):
        raise UserError(f"{path}, line {number}: hypothesis is no text")
    if any("\ud800" <= character <= "\udfff" for character in f"{question_id}{hypothesis}"):
        raise UserError(f"{path}, line {number}: half a character (a lone surrogate), which no text holds")
    return question_id, None if hypothesis is None or not str(hypothesis).strip() else str(hypothesis)


class ImportedRun(CellRun):
    """Takes answers from a file instead of asking a memory. Ids that fit nowhere are counted and named."""

    def __init__(self, cell: Cell, progress: Progress, hypotheses: Hypotheses, known: frozenset[str]) -> None:
        """`known` holds the ids of all the data set's questions, those that this run does not ask included."""
        super().__init__(cell, progress)
        self._hypotheses, self._known = hypotheses, known
        self._asked: list[str] = []

    def notes(self) -> tuple[str, ...]:
        given = self._hypotheses.answers
        asked = set(self._asked)
        empty = [question_id for question_id in self._asked if question_id in given and given[question_id] is None]
        findings = {
            "unknown: ids that the data set does not have, left out": [one for one in given if one not in self._known],
            "not asked: answers to questions outside of the chosen ones, left out": [o for o in given if o in self._known - asked],
            "repeated: further rows of an id, of which the first counts": self._hypotheses.repeated,
            "missing: questions without a row, counted as failed": [one for one in self._asked if one not in given],
            "empty: rows without an answer, counted as failed": empty,
        }
        return tuple(_found(what, ids) for what, ids in findings.items() if ids)

    async def _prepare(self, repeat: Repeat, case: EvalCase) -> None:
        return None

    async def _case(self, repeat: Repeat, case: EvalCase, window: Window) -> None:
        self._asked += [question.question_id for question in case.questions]
        await super()._case(repeat, case, window)

    async def _answer(
        self, repeat: Repeat, question: EvalQuestion, memory: Memory | Exception | None, session_of: dict[str, str]
    ) -> dict[str, Any]:
        text = self._hypotheses.answers.get(question.question_id)
        if text is None:
            what = "its row holds no answer" if question.question_id in self._hypotheses.answers else "the file has no row for it"
            row = failed(Status.ANSWER_FAILED, ValueError(what))
        else:
            row = answered(Answer(text), question, session_of, self.cell.dataset)
        row = {"id": question.question_id, **row, "usage": [], "times": {}, "origin": self.cell.run_key}
        repeat.answers.append(row)
        return row


def _found(what: str, ids: Iterable[str]) -> str:
    counted = Counter(ids)
    names = list(counted)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{sum(counted.values())} {what}: {', '.join(names[:NAMED])}{more}"
