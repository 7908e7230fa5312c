"""Runs a cell: prepare, answer and judge overlap over its cases, questions and repeats, and everything finished is on disk at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from memeval.config.identity import Keys
from memeval.config.schema import ANSWER, JUDGE, STAGES
from memeval.errors import ModelError, StorageError, UserError
from memeval.judges.contract import Judge
from memeval.judges.registry import build_judge
from memeval.pipeline.builder import Builder
from memeval.pipeline.cell import Cell
from memeval.pipeline.memory import Memory
from memeval.pipeline.models import Models
from memeval.pipeline.progress import Progress
from memeval.pipeline.question import ask, failed, judged
from memeval.pipeline.rows import (
    INGEST_PREFIX,
    answer_digest,
    check_answer_row,
    check_verdict_row,
    is_about,
    is_final,
    problem_of,
    tries_of,
)
from memeval.pipeline.store import RowStore
from memeval.pipeline.window import Window
from memeval.records import EvalCase, EvalQuestion, Status
from memeval.shown import one_line

T = TypeVar("T")

QUESTIONS_AHEAD = 3
"""Questions opened per place at the endpoint: enough to keep every place busy, few enough to bound memory."""
UNREAD_IN_A_ROW = 20
"""Verdicts in a row for which the judge's model gave no reply that could be read, after which the
run stops.
"""
CASES_AHEAD = 4
"""Cases open at once where there are as many: while some are being read, the questions of others keep the endpoint busy."""


@dataclass(frozen=True)
class Repeat:
    """One repeat under way."""

    seed: int
    answers: RowStore
    verdicts: RowStore
    judge: Judge


@dataclass(frozen=True)
class Finished:
    """What a cell's run left in memory: the cases that were asked and the stored rows of each repeat."""

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
    """Id of the row that tells what a case's ingest took."""
    return f"{INGEST_PREFIX}{case_id}"


def answers_header(keys: Keys, seed: int) -> dict[str, Any]:
    """The first line of a file of answers."""
    return {"answer": keys.answer, "seed": seed}


def verdicts_header(keys: Keys, seed: int) -> dict[str, Any]:
    """The first line of a file of verdicts."""
    return {"judge": keys.judge, "seed": seed}


def take_ids(case: EvalCase, taken: set[str]) -> None:
    """Adds the ids under which the rows of a case are stored. Raises `UserError` for one that can't be stored, or that is taken."""
    for row_id in (ingest_id(case.case_id), *(question.question_id for question in case.questions)):
        if any("\ud800" <= character <= "\udfff" for character in row_id):
            raise UserError(
                f"the id '{one_line(row_id)}' holds half of a surrogate pair, which can't be stored"
            )
        if row_id in taken:
            raise UserError(
                f"the id '{one_line(row_id)}' occurs twice in the data: ids of cases and of questions must be unique"
            )
        taken.add(row_id)


class CellRun:
    """One pass over a cell. Rows that an earlier pass finished are taken as they are; failed ones are tried again."""

    def __init__(self, cell: Cell, progress: Progress) -> None:
        self.cell, self.progress = cell, progress
        self._unread = 0
        self._noted: list[str] = []

    async def run(self, finish: Callable[[Finished], T]) -> T:
        """Runs the cell and returns what `finish` makes of it while the stores are still held.

        Raises `StorageError` where the disk refuses and `UserError` where the cell can't be run; finished rows stay in either case.
        """
        started, began = datetime.now().astimezone(), time.perf_counter()
        self._models = Models(self.cell.config, self.cell.run_key, self.progress.say)
        self._builder = Builder(self.cell, self._models)
        try:
            with ExitStack() as stack:
                repeats = tuple(self._open(seed, stack) for seed in self.cell.seeds)
                cases = await self._all(repeats)
                if not any(case.questions for case in cases):
                    raise UserError(
                        f"dataset={self.cell.config.dataset['name']} asks nothing under these settings: no question is left"
                    )
                return finish(
                    Finished(cases, repeats, started, time.perf_counter() - began, self.notes())
                )
        finally:
            await self._models.aclose()

    def cases(self) -> Iterator[EvalCase]:
        """The cases, with the questions that this run asks."""
        return self.cell.dataset.cases()

    def notes(self) -> tuple[str, ...]:
        """What a reader must know of this pass."""
        return tuple(dict.fromkeys(self._noted))

    def _open(self, seed: int, stack: ExitStack) -> Repeat:
        cell, keys = self.cell, self.cell.keys(seed)
        answers = RowStore(
            cell.answers_file(seed), answers_header(keys, seed), self._waiting, check_answer_row
        )
        verdicts = RowStore(
            cell.verdicts_file(seed), verdicts_header(keys, seed), self._waiting, check_verdict_row
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
        repeat = Repeat(seed, stack.enter_context(answers), stack.enter_context(verdicts), judge)
        for store in (answers, verdicts):
            if store.dropped:
                self.progress.say(
                    f"  {store.dropped} lines of {store.path} are torn, damaged, edited or of another key: left out"
                )
        return repeat

    def _waiting(self, path: Path) -> None:
        self.progress.say(f"waiting for {path}")

    async def _all(self, repeats: tuple[Repeat, ...]) -> tuple[EvalCase, ...]:
        window = Window(self._limit())
        asked: list[EvalCase] = []
        taken: set[str] = set()
        try:
            async with asyncio.TaskGroup() as group:
                for case in self.cases():
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
        settings = self.cell.config.llm
        return QUESTIONS_AHEAD * settings.max_concurrency if settings.name == "openai" else 1

    def _places(self, case: EvalCase) -> int:
        """Places that a case takes: one for each open question, as far as other cases have room beside it."""
        return min(len(case.questions), max(1, self._limit() // CASES_AHEAD))

    async def _case(self, repeat: Repeat, case: EvalCase, window: Window) -> None:
        rows = repeat.answers.rows
        open_questions = [
            question
            for question in case.questions
            if not self._stands(rows.get(question.question_id), ANSWER)
        ]
        left = places = self._places(case)
        self.progress.expect("prepare", 1)
        self.progress.expect("answer", len(case.questions))
        self.progress.expect("judge", len(case.questions))
        try:
            memory = await self._prepare(repeat, case) if open_questions else None
            self.progress.done(
                "prepare",
                reused=not open_questions or (isinstance(memory, Memory) and memory.found),
            )
            session_of = {
                turn.turn_id: session.session_id
                for session in case.sessions
                for turn in session.turns
            }
            try:
                async with asyncio.TaskGroup() as group:
                    for number, question in enumerate(case.questions):
                        task = group.create_task(
                            self._question(repeat, case, question, memory, session_of)
                        )
                        if (
                            number >= len(case.questions) - places
                        ):  # fewer are open from here on than the case has places
                            task.add_done_callback(lambda _: window.leave(1))
                            left -= 1
                        await asyncio.sleep(
                            0
                        )  # a turn for what was asked before: all recalls of a case in one go would hold up every call
            finally:
                if isinstance(memory, Memory) and (trouble := await memory.close()):
                    self._noted.append(
                        f"close() of a memory failed, which spoils no answer: {trouble}"
                    )
        finally:
            window.leave(left, text_size(case))

    async def _prepare(self, repeat: Repeat, case: EvalCase) -> Memory | Exception | None:
        """The case's memory, or the error that kept it from being built."""
        try:
            memory = await self._builder.memory(case, repeat.seed)
        except (asyncio.CancelledError, StorageError, UserError):
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of a case: a system's failure to ingest is the status of its questions
            return error
        row = repeat.answers.rows.get(ingest_id(case.case_id))
        if row is None or row.get("health") != asdict(memory.health):
            repeat.answers.append(self._ingest_row(case, memory))
        if memory.unsaved:
            self._noted.append(
                f"A memory could not be saved, and is built again when it is needed: {memory.unsaved}"
            )
        return memory

    def _ingest_row(self, case: EvalCase, memory: Memory) -> dict[str, Any]:
        return {
            "id": ingest_id(case.case_id),
            "status": Status.OK.value,
            "chunks": memory.chunks,
            "compressions": memory.compressions,
            "usage": memory.usage,
            "origin": memory.origin,
            "health": asdict(memory.health),
            "times": {"ingest_ms": round(memory.seconds * 1e3, 3)},
            **({"notes": dict(memory.notes)} if memory.notes else {}),
        }

    async def _question(
        self,
        repeat: Repeat,
        case: EvalCase,
        question: EvalQuestion,
        memory: Memory | Exception | None,
        session_of: dict[str, str],
    ) -> None:
        answer = repeat.answers.rows.get(question.question_id)
        if not self._stands(answer, ANSWER):
            answer = await self._answer(repeat, question, memory, session_of)
            self.progress.done("answer")
        else:
            self.progress.done("answer", reused=True)
        assert answer is not None
        verdict = repeat.verdicts.rows.get(question.question_id)
        reused = self._stands(verdict, JUDGE) and (
            answer["status"] != Status.OK or is_about(verdict, answer)
        )
        if not reused and answer["status"] == Status.OK:
            row = await judged(repeat.judge, question, answer, verdict)
            if problem := problem_of(row, check_verdict_row):
                row = {
                    "id": question.question_id,
                    **failed(Status.JUDGE_FAILED, problem),
                    "usage": [],
                    "times": {},
                }
            row |= {"judged": answer_digest(answer["hypothesis"]), "origin": self.cell.run_key}
            repeat.verdicts.append(row)
            self._watch(row)
        self.progress.done("judge", reused=reused)

    def _stands(self, row: Mapping[str, Any] | None, stage: str) -> bool:
        """Whether a stored row of a stage is taken as it is: `fresh` names the first stage of which none is."""
        fresh = self.cell.config.fresh
        made_again = fresh is not None and STAGES.index(fresh) <= STAGES.index(stage)
        return is_final(row) and not made_again

    def _watch(self, row: Mapping[str, Any]) -> None:
        """Stops the run where the judge's model never replies in the form that it is asked for:
        more calls would buy nothing.
        """
        if not tries_of(row):
            self._unread = 0 if row["status"] == Status.OK else self._unread
            return
        self._unread += 1
        if self._unread >= UNREAD_IN_A_ROW:
            said = one_line(str(row["verdict"]["reason"]))
            raise ModelError(
                f"the last {self._unread} replies of judge={self.cell.config.judge.name} could not be read ({said}): "
                "take a model that keeps to the form, or a template that asks for it"
            )

    async def _answer(
        self,
        repeat: Repeat,
        question: EvalQuestion,
        memory: Memory | Exception | None,
        session_of: dict[str, str],
    ) -> dict[str, Any]:
        if isinstance(memory, Memory):
            row = await ask(memory.watched, question, session_of, self.cell.dataset)
            if problem := problem_of(row, check_answer_row):
                row = {
                    "id": question.question_id,
                    **failed(Status.ANSWER_FAILED, problem),
                    "usage": [],
                    "times": {},
                }
        else:
            assert memory is not None, "a case with open questions is prepared"
            row = {"id": question.question_id, **failed(Status.INGEST_FAILED, memory)}
        row["origin"] = self.cell.run_key
        repeat.answers.append(row)
        return dict(repeat.answers.rows[question.question_id])  # as it is stored, without secrets


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error that is not itself a group."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
