"""Runs a cell: prepare, answer and judge overlap over its cases, questions and repeats, and
everything finished is on disk at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from memeval.config.identity import Keys
from memeval.config.roles import ROLES, settings_of_role
from memeval.config.schema import ANSWER, JUDGE, STAGES
from memeval.errors import ModelError, UserError
from memeval.judges.contract import Judge
from memeval.judges.registry import build_judge
from memeval.pipeline.cell import Cell
from memeval.pipeline.judging import failed_verdict, judged
from memeval.pipeline.memories import MemorySource
from memeval.pipeline.metrics import Measured, measure_answer
from memeval.pipeline.models import Models
from memeval.pipeline.progress import Progress
from memeval.pipeline.question import failed_answer
from memeval.pipeline.rows import answer_digest, is_about, is_final
from memeval.pipeline.source import AnswerSource, CaseAnswers
from memeval.pipeline.turns import CaseTurns
from memeval.pipeline.window import Window
from memeval.records import EvalCase, EvalQuestion, Status
from memeval.results import (
    INGEST_PREFIX,
    AnswerRow,
    IngestRow,
    TextStore,
    VerdictRow,
    texts_file,
)
from memeval.results.rows import answer_or_ingest
from memeval.results.store import RowStore
from memeval.shown import one_line

T = TypeVar("T")

QUESTIONS_AHEAD = 3
"""Questions opened per place at the endpoint: enough to keep every place busy, few enough to bound
memory.
"""
UNREAD_IN_A_ROW = 20
"""Verdicts in a row for which the judge's model gave no reply that could be read, after which the
run stops.
"""
CASES_AHEAD = 4
"""Cases open at once where there are as many: while some are being read, the questions of others
keep the endpoint busy.
"""


@dataclass(frozen=True)
class Repeat:
    """One repeat under way."""

    seed: int
    answers: RowStore[AnswerRow | IngestRow]
    verdicts: RowStore[VerdictRow]
    texts: TextStore
    """What the rows of the answers refer to."""
    judge: Judge
    measured: dict[str, Measured] = field(default_factory=dict)
    """The metrics of each answer, by question id, made from its row in this pass."""

    def answer(self, question_id: str) -> AnswerRow | None:
        """The stored answer of a question."""
        row = self.answers.rows.get(question_id)
        return row if isinstance(row, AnswerRow) else None


@dataclass(frozen=True)
class Finished:
    """What a cell's run left in memory: the cases that were asked and the stored rows of each
    repeat.
    """

    cases: tuple[EvalCase, ...]
    """Without their sessions' text."""
    repeats: tuple[Repeat, ...]
    started_at: datetime
    seconds: float
    notes: tuple[str, ...] = ()
    """What the pass itself has to say beside its records."""


def text_size(case: EvalCase) -> int:
    """Characters that a case's turns hold."""
    return sum(len(turn.text) for session in case.sessions for turn in session.turns)


def ingest_id(case_id: str) -> str:
    """Id of the row with what a case's ingest took."""
    return f"{INGEST_PREFIX}{case_id}"


def answers_header(keys: Keys, seed: int) -> dict[str, Any]:
    """The first line of a file of answers."""
    return {"answer": keys.answer, "seed": seed}


def verdicts_header(keys: Keys, seed: int) -> dict[str, Any]:
    """The first line of a file of verdicts."""
    return {"judge": keys.judge, "seed": seed}


def take_ids(case: EvalCase, taken: set[str]) -> None:
    """Adds the ids under which the rows of a case are stored.

    Raises `UserError` for one that can't be stored, or that is taken.
    """
    for row_id in (ingest_id(case.case_id), *(question.question_id for question in case.questions)):
        if any("\ud800" <= character <= "\udfff" for character in row_id):
            raise UserError(
                f"the id '{one_line(row_id)}' holds half of a surrogate pair, which can't be stored"
            )

        if row_id in taken:
            raise UserError(
                f"the id '{one_line(row_id)}' occurs twice in the data: ids of cases and of "
                "questions must be unique"
            )

        taken.add(row_id)


class CellRun:
    """One pass over a cell.

    Rows that an earlier pass finished are taken as they are; failed ones are tried again.
    """

    def __init__(
        self,
        cell: Cell,
        progress: Progress,
        source: Callable[[Cell, Models], AnswerSource] = MemorySource,
    ) -> None:
        """`source` makes what gives the answers; by default the cell's memory system is asked."""
        self.cell, self.progress = cell, progress
        self._make_source = source
        self._unread = 0
        self._noted: list[str] = []

    async def run(self, finish: Callable[[Finished], T]) -> T:
        """Runs the cell and returns what `finish` makes of it while the stores are still held.

        Raises `StorageError` where the disk refuses and `UserError` where the cell can't be run;
        finished rows stay in either case.
        """
        started, began = datetime.now().astimezone(), time.perf_counter()
        self._models = Models(self.cell.config, self.cell.run_key, self.progress.say)
        self._source = self._make_source(self.cell, self._models)
        try:
            with ExitStack() as stack:
                repeats = tuple(self._open(seed, stack) for seed in self.cell.seeds)
                cases = await self._all(repeats)
                if not any(case.questions for case in cases):
                    raise UserError(
                        f"dataset={self.cell.config.dataset['name']}: no questions are left under "
                        "these settings"
                    )

                return finish(
                    Finished(cases, repeats, started, time.perf_counter() - began, self.notes())
                )
        finally:
            await self._models.aclose()

    def notes(self) -> tuple[str, ...]:
        """What a reader must know of this pass."""
        return tuple(dict.fromkeys([*self._noted, *self._source.notes()]))

    def _open(self, seed: int, stack: ExitStack) -> Repeat:
        cell, keys = self.cell, self.cell.keys(seed)
        answers: RowStore[AnswerRow | IngestRow] = RowStore(
            cell.answers_file(seed), answers_header(keys, seed), answer_or_ingest, self._waiting
        )
        verdicts: RowStore[VerdictRow] = RowStore(
            cell.verdicts_file(seed),
            verdicts_header(keys, seed),
            VerdictRow.from_json,
            self._waiting,
        )
        judging = cell.config.judge
        judge = build_judge(
            judging.name,
            threshold=judging.threshold,
            template=cell.judge_template,
            model=self._models.judge,
            seed=seed,
            settings=cell.judge_settings,
            class_path=judging.class_,
        )
        stack.enter_context(answers)
        stack.enter_context(verdicts)
        texts = stack.enter_context(TextStore(texts_file(answers.path)))
        for path, dropped in ((answers.path, answers.dropped), (verdicts.path, verdicts.dropped)):
            if dropped:
                self.progress.say(
                    f"  {dropped} lines of {path} are torn, damaged, edited or of another key: "
                    "left out"
                )

        return Repeat(seed=seed, answers=answers, verdicts=verdicts, texts=texts, judge=judge)

    def _waiting(self, path: Path) -> None:
        self.progress.say(f"waiting for {path}")

    async def _all(self, repeats: tuple[Repeat, ...]) -> tuple[EvalCase, ...]:
        window = Window(self._limit())
        asked: list[EvalCase] = []
        taken: set[str] = set()
        try:
            async with asyncio.TaskGroup() as group:
                for case in self._source.cases():
                    take_ids(case, taken)
                    asked.append(EvalCase(case.case_id, (), case.questions, case.speakers))
                    for repeat in repeats:
                        await window.enter(self._places(case), text_size(case))
                        group.create_task(self._case(repeat, case, window))
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors

        return tuple(asked)

    def _limit(self) -> int:
        """Places in the window; one where no endpoint is waited for."""
        llm = self.cell.config.llm
        if llm.name != "openai":
            return 1

        limits = [settings_of_role(llm, role).max_concurrency for role in ROLES]
        return QUESTIONS_AHEAD * max(limits)

    def _places(self, case: EvalCase) -> int:
        """Places that a case takes: one for each open question, as far as other cases have room
        beside it.
        """
        return min(len(case.questions), max(1, self._limit() // CASES_AHEAD))

    async def _case(self, repeat: Repeat, case: EvalCase, window: Window) -> None:
        open_questions = [
            question
            for question in case.questions
            if not self._is_kept(repeat.answer(question.question_id), ANSWER)
        ]
        left = places = self._places(case)
        self.progress.expect("prepare", 1)
        self.progress.expect("answer", len(case.questions))
        self.progress.expect("judge", len(case.questions))
        try:
            answers = await self._open_case(repeat, case) if open_questions else None
            self.progress.done("prepare", reused=answers is None or answers.reused)
            turns = CaseTurns.of(case)
            try:
                async with asyncio.TaskGroup() as group:
                    for number, question in enumerate(case.questions):
                        task = group.create_task(self._question(repeat, question, answers, turns))
                        if number >= len(case.questions) - places:
                            # From here on, fewer questions are open than the case has places.
                            task.add_done_callback(lambda _: window.leave(1))
                            left -= 1

                        # A turn for what was asked before: all recalls of a case in one go would
                        # hold up every call.
                        await asyncio.sleep(0)
            finally:
                if answers is not None:
                    await answers.close()
        finally:
            window.leave(left, text_size(case))

    async def _open_case(self, repeat: Repeat, case: EvalCase) -> CaseAnswers:
        """What answers the questions of a case; a failed ingest gives each of them its error."""
        answers = await self._source.open(case, repeat.seed)
        taken = answers.ingest
        row = repeat.answers.rows.get(ingest_id(case.case_id))
        if taken is not None and not (isinstance(row, IngestRow) and row.health == taken.health):
            repeat.answers.append(replace(taken, id=ingest_id(case.case_id)))

        return answers

    async def _question(
        self,
        repeat: Repeat,
        question: EvalQuestion,
        answers: CaseAnswers | None,
        turns: CaseTurns,
    ) -> None:
        answer = repeat.answer(question.question_id)
        reused = answer is not None and self._is_kept(answer, ANSWER)
        if answer is None or not reused:
            assert answers is not None, "a case with open questions is opened"
            row = await answers.answer(question, turns, repeat.texts)
            answer = self._keep_answer(repeat, row)

        self.progress.done("answer", reused=reused)

        measured = measure_answer(answer, question, turns, self.cell.dataset)
        repeat.measured[question.question_id] = measured
        await self._judge(repeat, question, answer, measured)

    def _keep_answer(self, repeat: Repeat, row: AnswerRow) -> AnswerRow:
        """Stores an answer, and returns it as it is stored; one that can't be stored failed."""
        row = replace(row, origin=self.cell.run_key)
        try:
            stored = repeat.answers.append(row)
        except ValueError as problem:
            failure = failed_answer(row.id, Status.ANSWER_FAILED, problem)
            stored = repeat.answers.append(replace(failure, origin=self.cell.run_key))

        assert isinstance(stored, AnswerRow)
        return stored

    async def _judge(
        self, repeat: Repeat, question: EvalQuestion, answer: AnswerRow, measured: Measured
    ) -> None:
        before = repeat.verdicts.rows.get(question.question_id)
        kept = before is not None and self._is_kept(before, JUDGE)
        if answer.status is not Status.OK or (kept and before and is_about(before, answer)):
            self.progress.done("judge", reused=kept)
            return

        text = answer.hypothesis or ""
        row = await judged(repeat.judge, question, text, measured.metrics, before)
        self._watch(self._keep_verdict(repeat, row, text))
        self.progress.done("judge", reused=False)

    def _keep_verdict(self, repeat: Repeat, row: VerdictRow, answer: str) -> VerdictRow:
        """Stores a verdict, and returns it as it is stored; one that can't be stored failed."""
        digest, origin = answer_digest(answer), self.cell.run_key
        try:
            return repeat.verdicts.append(replace(row, judged=digest, origin=origin))
        except ValueError as problem:
            failure = failed_verdict(row.id, problem)
            return repeat.verdicts.append(replace(failure, judged=digest, origin=origin))

    def _is_kept(self, row: AnswerRow | VerdictRow | None, stage: str) -> bool:
        """Whether a stored row of a stage is taken as it is: `fresh` names the first stage of which
        none is.
        """
        fresh = self.cell.config.fresh
        made_again = fresh is not None and STAGES.index(fresh) <= STAGES.index(stage)
        return is_final(row) and not made_again

    def _watch(self, row: VerdictRow) -> None:
        """Stops the run where the judge's model never replies in the form that it is asked for:
        more calls would buy nothing.
        """
        if not row.tries or row.verdict is None:
            self._unread = 0 if row.status is Status.OK else self._unread
            return

        self._unread += 1
        if self._unread >= UNREAD_IN_A_ROW:
            raise ModelError(
                f"the last {self._unread} replies of judge={self.cell.config.judge.name} could not "
                f"be read ({one_line(row.verdict.reason)}): "
                "use a model that keeps to the form, or a prompt template that asks for it"
            )


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error that is not itself a group."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]

    return error
