"""One repeat of a cell: its files of rows, and the ids under which rows are stored."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from memeval.config.identity import Keys
from memeval.errors import UserError
from memeval.judges.contract import Judge
from memeval.pipeline.execute.metrics import Measured
from memeval.pipeline.execute.timeline import ids_until
from memeval.records import EvalCase, EvalQuestion
from memeval.results import INGEST_PREFIX, AnswerRow, IngestRow, TextStore, VerdictRow
from memeval.results.store import RowStore
from memeval.text.shown import one_line


class Repeat(Struct, frozen=True):
    seed: int
    answers: RowStore[AnswerRow | IngestRow]
    verdicts: RowStore[VerdictRow]
    texts: TextStore
    """Texts that the rows of the answers refer to."""
    judge: Judge
    measured: dict[str, Measured] = field(default_factory=dict)
    """The metrics of each answer, by question id, computed from its row in this pass."""

    def answer(self, question_id: str) -> AnswerRow | None:
        row = self.answers.rows.get(question_id)
        return row if isinstance(row, AnswerRow) else None


class Finished(Struct, frozen=True):
    """A finished pass in memory: its cases, and the stored rows of each repeat."""

    cases: tuple[EvalCase, ...]
    """Without their sessions' text."""
    repeats: tuple[Repeat, ...]
    started_at: datetime
    seconds: float
    notes: tuple[str, ...] = ()
    """Notes on the pass itself and on the data, not on the records."""
    stopped: str = ""
    """Reason for an early end; `cases` then contain only the questions with an answer."""


def answered_cases(cases: Sequence[EvalCase], repeats: Sequence[Repeat]) -> tuple[EvalCase, ...]:
    """The cases with the questions that have an answer in each repeat, judged or not."""
    answered = []
    for case in cases:
        questions = [question for question in case.questions if _is_answered(question, repeats)]
        answered.append(replace(case, questions=tuple(questions)))

    return tuple(answered)


def _is_answered(question: EvalQuestion, repeats: Sequence[Repeat]) -> bool:
    for repeat in repeats:
        # A row may exist from an earlier pass, although this pass has not reached its case yet.
        is_measured = question.question_id in repeat.measured
        if not is_measured or repeat.answer(question.question_id) is None:
            return False

    return True


def ingest_id(case_id: str) -> str:
    """Id of the row with the costs of a case's ingest."""
    return f"{INGEST_PREFIX}{case_id}"


def ingest_ids(case: EvalCase) -> tuple[str, ...]:
    """Ids of the rows with the costs of a case's ingests: one, or one for each checkpoint."""
    return tuple(map(ingest_id, ids_until(case)))


def answers_header(keys: Keys, seed: int) -> dict[str, Any]:
    """The first line of a file of answers."""
    return {"answer": keys.answer, "seed": seed}


def verdicts_header(keys: Keys, seed: int) -> dict[str, Any]:
    """The first line of a file of verdicts."""
    return {"judge": keys.judge, "seed": seed}


def take_ids(case: EvalCase, taken: set[str]) -> None:
    """Adds a case's row ids to `taken`. Raises `UserError` for taken ids and unstorable ones."""
    # One namespace: the row of a case's ingest is in the same file as the answers.
    for row_id in (*ingest_ids(case), *(question.question_id for question in case.questions)):
        if any("\ud800" <= character <= "\udfff" for character in row_id):
            raise UserError(
                f"the id '{one_line(row_id)}' contains a lone surrogate, which can't be stored"
            )

        if row_id in taken:
            raise UserError(
                f"the id '{one_line(row_id)}' occurs twice in the data: ids of cases and of "
                "questions must be unique"
            )

        taken.add(row_id)


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error that is not itself a group."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]

    return error
