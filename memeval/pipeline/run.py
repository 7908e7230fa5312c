"""Runs a cell: prepare, answer and judge overlap over its cases, questions and repeats, and
everything finished is on disk at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, cast

from memeval.config.identity import Keys
from memeval.config.paths import cache_dir
from memeval.config.roles import ROLES, settings_of_role
from memeval.config.schema import ANSWER, JUDGE, STAGES
from memeval.errors import BudgetError, ModelError, UserError
from memeval.judges.contract import Judge
from memeval.judges.registry import build_judge
from memeval.pipeline.budget import budget_of, check_budget
from memeval.pipeline.cell import Cell
from memeval.pipeline.connections import Connections
from memeval.pipeline.judging import failed_verdict, judge_answer
from memeval.pipeline.lane import Computing, Lane, Turn
from memeval.pipeline.memories import MemorySource
from memeval.pipeline.metrics import Measured, measure_answer
from memeval.pipeline.models import Models
from memeval.pipeline.progress import Progress
from memeval.pipeline.question import failed_answer
from memeval.pipeline.rows import answer_digest, is_about, is_final, usages_of
from memeval.pipeline.source import AnswerSource, CaseAnswers
from memeval.pipeline.stores import Stores, refuse_to_wait
from memeval.pipeline.turns import CaseTurns
from memeval.pipeline.unit import Keeper, unit_of
from memeval.pipeline.window import Room, Window
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
from memeval.store.opening import open_store

T = TypeVar("T")
S = TypeVar("S", bound=AbstractContextManager[Any])

QUESTIONS_AHEAD = 3
"""Questions opened per place at the endpoint: enough to keep every place busy, few enough to bound
memory.
"""
UNREAD_IN_A_ROW = 20
"""Verdicts in a row for which the judge's model gave no reply that could be read, after which the
run stops.
"""
MOST_FILES = 10_000
"""Files of rows that are looked at for their version."""
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
    stopped: str = ""
    """Why it ended before all questions were done; `cases` then holds those with an answer."""


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


def window_limit(cell: Cell) -> int:
    """Places in the window of a cell's questions; one where no endpoint is waited for."""
    llm = cell.config.llm
    if llm.name != "openai":
        return 1

    limits = [settings_of_role(llm, role).max_concurrency for role in ROLES]
    return QUESTIONS_AHEAD * max(limits)


_searched: set[Path] = set()
"""Folders in which this process looked for rows of version 0.1."""


def old_files(folder: Path) -> int:
    """How many files of rows in a folder version 0.1 wrote: their header has no seal."""
    count = 0
    for path in sorted(folder.glob("*.jsonl"))[:MOST_FILES]:
        try:
            with path.open("rb") as file:
                header = file.readline(1000)
        except OSError:
            continue
        count += header.startswith(b'{"header"') and b'"seal"' not in header
    return count


class CellRun:
    """One pass over a cell.

    Rows that an earlier pass finished are taken as they are; failed ones are tried again.
    """

    def __init__(
        self,
        cell: Cell,
        progress: Progress,
        source: Callable[[Cell, Models], AnswerSource] = MemorySource,
        judge: Judge | None = None,
        *,
        lane: Lane | None = None,
        number: int = 0,
    ) -> None:
        """`source` makes what gives the answers; by default the cell's memory system is asked.

        `judge` judges in place of one that is built from the config. `lane` is shared with other
        cells, among which this one is the one with that number.
        """
        self.cell, self.progress, self.number = cell, progress, number
        self._make_source, self._judge_given = source, judge
        self._shares_lane = lane is not None
        self._lane = lane or self._own_lane()
        self._unread = 0
        self._noted: list[str] = []
        self.stopped: Any = None
        """What `finish` made of a run that ended because the budget was spent."""

    def _own_lane(self) -> Lane:
        say = self.progress.say
        store = open_store(self.cell.config.store, cache_dir(), say)
        connections = Connections(say, store, budget_of(self.cell.config))
        return Lane(connections, Stores(), Window(window_limit(self.cell)))

    async def run(self, finish: Callable[[Finished], T]) -> T:
        """Runs the cell and returns what `finish` makes of it while the stores are still held.

        Where the budget is spent, that is what is done so far; among other cells it is in `stopped`
        once this one is cancelled.

        Raises `StorageError` where the disk refuses and `UserError` where the cell can't be run;
        finished rows stay in either case.
        """
        budget = self._lane.connections.budget
        if budget is None or self._shares_lane:
            return await self._run(finish)

        check_budget(self.cell)
        try:
            return await budget.keep(self._run(finish))
        except BudgetError:
            if self.stopped is None:
                raise  # no file was opened yet

            return cast(T, self.stopped)

    async def _run(self, finish: Callable[[Finished], T]) -> T:
        turn = Turn(self._lane, self.number)
        await turn.take()
        started, began = datetime.now().astimezone(), time.perf_counter()
        try:
            self.begin()
            async with AsyncExitStack() as stack:
                repeats = [await self._open(seed, stack, turn) for seed in self.cell.seeds]
                cases: list[EvalCase] = []
                try:
                    await self._all(repeats, turn, cases)
                except asyncio.CancelledError:
                    seconds = time.perf_counter() - began
                    self._finish_stopped(
                        finish, _answered(cases, repeats), repeats, started, seconds
                    )
                    raise

                if not any(case.questions for case in cases):
                    raise UserError(
                        f"dataset={self.cell.config.dataset['name']}: no questions are left "
                        "under these settings"
                    )

                seconds = time.perf_counter() - began
                finished = Finished(tuple(cases), tuple(repeats), started, seconds, self.notes())
                if not self._shares_lane:
                    return finish(finished)

                # Other cells wait for replies meanwhile.
                return await _in_thread(lambda: finish(finished))
        finally:
            turn.give()
            if not self._shares_lane:
                await self._lane.connections.aclose()

    def _finish_stopped(
        self,
        finish: Callable[[Finished], T],
        cases: tuple[EvalCase, ...],
        repeats: Sequence[Repeat],
        started: datetime,
        seconds: float,
    ) -> None:
        """Keeps what is done, where the budget is what the run was cancelled for."""
        budget = self._lane.connections.budget
        if budget is None or not budget.is_spent:
            return

        why = budget.describe_end()
        self.stopped = finish(
            Finished(cases, tuple(repeats), started, seconds, self.notes(), stopped=why)
        )

    def begin(self, models: Models | None = None) -> None:
        """Makes the cell's models, unless they are given, and what gives its answers."""
        self._models = models or Models(
            self.cell.config, self.cell.run_key, self.progress.say, self._lane.connections
        )
        self._source = self._make_source(self.cell, self._models)

    def notes(self) -> tuple[str, ...]:
        """What a reader must know of this pass."""
        return tuple(dict.fromkeys([*self._noted, *self._source.notes()]))

    def take_notes(self) -> tuple[str, ...]:
        """The notes so far, once."""
        notes, self._noted = self.notes(), []
        return notes

    async def _open(self, seed: int, stack: AsyncExitStack, turn: Turn) -> Repeat:
        """Opens the files of a repeat.

        While another process holds one of them, the next cells have their turn.
        """
        cell, keys = self.cell, self.cell.keys(seed)

        async def busy(path: Path) -> None:
            self.progress.say(f"waiting for {path}")
            turn.give()

        async def opened(path: Path, make: Callable[[], S]) -> S:
            store = await stack.enter_async_context(self._lane.stores.opened(path, make, busy))
            await turn.take()
            return store

        answers_path, verdicts_path = cell.answers_file(seed), cell.verdicts_file(seed)
        texts_path, shared = texts_file(answers_path), self._lane.connections.store
        self._say_what_is_too_old(answers_path)
        answers: RowStore[AnswerRow | IngestRow] = await opened(
            answers_path,
            lambda: RowStore(
                answers_path,
                answers_header(keys, seed),
                answer_or_ingest,
                refuse_to_wait,
                shared.rows(answers_path),
            ),
        )
        verdicts: RowStore[VerdictRow] = await opened(
            verdicts_path,
            lambda: RowStore(
                verdicts_path,
                verdicts_header(keys, seed),
                VerdictRow.from_json,
                refuse_to_wait,
                shared.rows(verdicts_path),
            ),
        )
        texts = await opened(texts_path, lambda: TextStore(texts_path, shared.texts(texts_path)))
        for path, dropped in ((answers_path, answers.dropped), (verdicts_path, verdicts.dropped)):
            if dropped:
                self.progress.say(
                    f"  {dropped} lines of {path} are torn, damaged, edited or of another key: "
                    "left out"
                )

        return Repeat(seed, answers, verdicts, texts, self.judge(seed))

    def judge(self, seed: int) -> Judge:
        """The judge of the repeat under a seed."""
        judging = self.cell.config.judge
        return self._judge_given or build_judge(
            judging.name,
            threshold=judging.threshold,
            template=self.cell.judge_template,
            model=self._models.judge,
            seed=seed,
            settings=self.cell.judge_settings,
            class_path=judging.class_,
        )

    def _say_what_is_too_old(self, path: Path) -> None:
        """Says once that rows of version 0.1 lie beside a file that is about to be begun."""
        if path.exists() or path.parent in _searched:
            return

        _searched.add(path.parent)
        if count := old_files(path.parent):
            self.progress.say(
                f"  {count} files in {path.parent} are of memeval 0.1, whose rows this version "
                "does not use: their questions are asked again, replies come from the cache"
            )

    async def _all(self, repeats: Sequence[Repeat], turn: Turn, asked: list[EvalCase]) -> None:
        """Works on all cases; `asked` gets each of them when its turn comes."""
        taken: set[str] = set()
        try:
            async with asyncio.TaskGroup() as group:
                for case in self._source.cases():
                    take_ids(case, taken)
                    asked.append(EvalCase(case.case_id, (), case.questions, case.speakers))
                    for repeat in repeats:
                        room = self._room(case)
                        await room.enter()
                        group.create_task(self._alone(repeat, case, room))

                turn.give()
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors

    def _room(self, case: EvalCase) -> Room:
        """Room for a case: a place for each open question, as far as other cases have room beside
        it.
        """
        window = self._lane.window
        places = min(len(case.questions), max(1, window.limit // CASES_AHEAD))
        return Room(window, places, text_size(case))

    async def _alone(self, repeat: Repeat, case: EvalCase, room: Room) -> None:
        """Works on a case while no other cell works on its answers."""
        try:
            async with self._lane.stores.unit(repeat.answers.path, case.case_id):
                if self._lane.computing is None:
                    await self.work(repeat, case, room)
                else:
                    await self._compute(self._lane.computing, repeat, case)
        finally:
            room.leave()

    async def _compute(self, computing: Computing, repeat: Repeat, case: EvalCase) -> None:
        """Has another process work on a case, and keeps what it makes."""
        keeper = Keeper(repeat, self.progress)
        done = await computing.compute(
            lambda: unit_of(self.number, repeat, case, ingest_id(case.case_id)), keeper
        )
        repeat.measured.update(done.measured)
        self._noted += done.notes

    async def work(self, repeat: Repeat, case: EvalCase, room: Room | None = None) -> None:
        """Answers and judges the questions of a case."""
        turns = CaseTurns.of(case)
        kept = {
            question.question_id: self._kept_answer(repeat, question, turns)
            for question in case.questions
        }
        is_open = any(answer is None for answer in kept.values())
        places = room.places if room else 0
        self.progress.expect("prepare", 1)
        self.progress.expect("answer", len(case.questions))
        self.progress.expect("judge", len(case.questions))
        answers = await self._open_case(repeat, case) if is_open else None
        self.progress.done("prepare", reused=answers is None or answers.reused)
        try:
            async with asyncio.TaskGroup() as group:
                for number, question in enumerate(case.questions):
                    before = kept[question.question_id]
                    task = group.create_task(
                        self._question(repeat, question, before, answers, turns)
                    )
                    if room and number >= len(case.questions) - places:
                        # From here on, fewer questions are open than the case has places.
                        task.add_done_callback(lambda _: room.leave_one())

                    # A turn for what was asked before: all recalls of a case in one go would
                    # hold up every call.
                    await asyncio.sleep(0)
        finally:
            if answers is not None:
                await answers.close()

    async def _open_case(self, repeat: Repeat, case: EvalCase) -> CaseAnswers:
        """What answers the questions of a case; a failed ingest gives each of them its error."""
        answers = await self._source.open(case, repeat.seed)
        taken = answers.ingest
        row = repeat.answers.rows.get(ingest_id(case.case_id))
        if taken is not None and not (isinstance(row, IngestRow) and row.health == taken.health):
            repeat.answers.append(replace(taken, id=ingest_id(case.case_id)))
            self.progress.spent(usages_of(taken, self.cell.run_key))

        return answers

    def _kept_answer(
        self, repeat: Repeat, question: EvalQuestion, turns: CaseTurns
    ) -> AnswerRow | None:
        """The stored answer of a question; None where it is to be made, or made again."""
        answer = repeat.answer(question.question_id)
        if answer is None or not self._is_kept(answer, ANSWER):
            return None

        if answer.ranking is not None and not turns.hold(answer.ranking):
            self._noted.append(
                f"The stored answer to {one_line(question.question_id, 80)} names turns that its "
                "case does not have: it was left out and made again."
            )
            return None

        return answer

    async def _question(
        self,
        repeat: Repeat,
        question: EvalQuestion,
        kept: AnswerRow | None,
        answers: CaseAnswers | None,
        turns: CaseTurns,
    ) -> None:
        answer = kept
        if answer is None:
            assert answers is not None, "a case with open questions is opened"
            row = await answers.answer(question, turns, repeat.texts)
            answer = self._keep_answer(repeat, row)

        self.progress.done("answer", reused=kept is not None)

        measured = measure_answer(answer, question, turns, self.cell.dataset)
        repeat.measured[question.question_id] = measured
        await self._judge(repeat, question, answer, measured)

    def _keep_answer(self, repeat: Repeat, row: AnswerRow) -> AnswerRow:
        """Stores an answer, and returns it as it is stored; one that can't be stored failed."""
        row = replace(row, origin=self.cell.run_key)
        self.progress.spent(row.usage)
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
        row = await judge_answer(repeat.judge, question, text, measured.metrics, before)
        self.progress.spent(row.usage)
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


def _answered(cases: Sequence[EvalCase], repeats: Sequence[Repeat]) -> tuple[EvalCase, ...]:
    """The cases with the questions that have an answer in each repeat, judged or not."""
    answered = []
    for case in cases:
        questions = [one for one in case.questions if _is_answered(one, repeats)]
        answered.append(replace(case, questions=tuple(questions)))

    return tuple(answered)


def _is_answered(question: EvalQuestion, repeats: Sequence[Repeat]) -> bool:
    for repeat in repeats:
        is_measured = question.question_id in repeat.measured
        if not is_measured or repeat.answer(question.question_id) is None:
            return False

    return True


async def _in_thread(work: Callable[[], T]) -> T:
    """What `work` comes to in a thread; a cancellation waits for its end, as files are written."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error that is not itself a group."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]

    return error
