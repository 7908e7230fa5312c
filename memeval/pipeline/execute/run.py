"""Runs a cell: prepare, answer and judge overlap, and finished rows are on disk immediately."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from memeval.config.roles import called_roles, settings_of_role
from memeval.errors import UserError
from memeval.judges.contract import Judge
from memeval.pipeline.execute.case_work import CaseWork
from memeval.pipeline.execute.lane import Computing, Lane
from memeval.pipeline.execute.memories import MemorySource
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.execute.repeat import (
    Finished,
    Repeat,
    answered_cases,
    answers_header,
    first_error,
    take_ids,
    verdicts_header,
)
from memeval.pipeline.execute.source import AnswerSource
from memeval.pipeline.execute.timeline import ids_until, without_turns
from memeval.pipeline.execute.unit import Keeper, unit_of
from memeval.pipeline.execute.window import WindowShare
from memeval.pipeline.open.called import run_with_breaker
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.records import EvalCase
from memeval.results import AnswerRow, IngestRow, TextStore, VerdictRow, texts_file
from memeval.results.rows import answer_or_ingest
from memeval.results.store import RowStore
from memeval.text.shown import counted

T = TypeVar("T")
S = TypeVar("S", bound=AbstractContextManager[Any])

QUESTIONS_AHEAD = 4
"""Questions opened per slot at the endpoint: enough to keep slots busy, and bounded for memory."""
CASES_AHEAD, CASES_EACH = 4, 2
"""Cases open at the same time, and per process if several compute: while some cases are loaded,
questions of others keep the endpoint busy.
"""


def text_size(case: EvalCase) -> int:
    """Number of characters in a case's turns."""
    return sum(len(turn.text) for turn in case.turns)


def window_limit(cell: Cell) -> int:
    """Slots in the window of a cell's questions; one if it waits for no endpoint."""
    llm = cell.config.llm
    limits = [settings_of_role(llm, role).max_concurrency for role in called_roles(llm)]
    return QUESTIONS_AHEAD * max(limits) if limits else 1


class CellRun(CaseWork):
    """One pass over a cell: its files are opened, and its cases are worked on concurrently."""

    def __init__(
        self,
        cell: Cell,
        progress: Progress,
        source: Callable[[Cell, Models], AnswerSource] = MemorySource,
        judge: Judge | None = None,
        *,
        lane: Lane,
        number: int = 0,
    ) -> None:
        """`lane` is shared with other cells; `number` is the position of this one."""
        super().__init__(cell, progress, lane.connections, source, judge)
        self._lane, self.number = lane, number
        self.stopped: Any = None
        """The result of `finish` for a run that ended because the budget was spent."""
        self._data_notes: tuple[str, ...] = ()
        """The data set's notes on the cases that were read."""
        self._started_at: datetime
        self._began: float
        """Start of the cell's turn, as a date and on the clock that measures durations."""

    async def run(self, finish: Callable[[Finished], T]) -> T:
        """Returns the result of `finish`, called while the stores are held.

        Raises `StorageError` if the disk fails, `UserError` if the cell can't be run, and
        `WorldError` if an endpoint no longer answers; finished rows are kept.
        """
        breaker = self._lane.connections.breaker
        return await run_with_breaker(self.cell, breaker, self._run(finish))

    async def _run(self, finish: Callable[[Finished], T]) -> T:
        await self._lane.queue.acquire(self.number)
        # The clock starts when the cell has its turn: waiting for other cells is not part of this
        # run's duration.
        self._started_at, self._began = datetime.now().astimezone(), time.perf_counter()
        try:
            self.begin()
            async with AsyncExitStack() as stack:
                repeats = [await self._open(seed, stack) for seed in self.cell.seeds]
                # Work on the cell is only possible once its files are open.
                self._report_totals()
                cases = await self._work_through(repeats, finish)
                # A finished run is reused unchanged, and its files are not opened again.
                await self._lane.connections.store.call(lambda: _flush(repeats))
                done = self._finished(cases, repeats)
                # In a thread: other cells wait for replies on the event loop.
                return await _in_thread(lambda: finish(done))
        finally:
            # Otherwise a cell that fails halfway would keep the others waiting forever.
            self._lane.queue.release(self.number)

    async def _work_through(
        self, repeats: Sequence[Repeat], finish: Callable[[Finished], Any]
    ) -> list[EvalCase]:
        """Works on all cases, and returns them; finishes the run early if the budget is spent."""
        cases: list[EvalCase] = []
        try:
            await self._run_cases(repeats, cases)
        except asyncio.CancelledError:
            budget = self._lane.connections.budget
            # A spent budget arrives as a cancellation. This is the last moment at which the rows of
            # all repeats are still open and held.
            if budget is not None and budget.is_exhausted:
                answered = answered_cases(cases, repeats)
                self.stopped = finish(self._finished(answered, repeats, budget.describe_end()))

            raise

        if any(case.questions for case in cases):
            return cases

        name = self.cell.config.dataset["name"]
        raise UserError(f"dataset={name}: no questions are left under these settings")

    def _finished(
        self, cases: Sequence[EvalCase], repeats: Sequence[Repeat], stopped: str = ""
    ) -> Finished:
        return Finished(
            cases=tuple(cases),
            repeats=tuple(repeats),
            started_at=self._started_at,
            seconds=time.perf_counter() - self._began,
            notes=(*self.notes(), *self.cell.loaded.notes, *self._data_notes),
            stopped=stopped,
        )

    async def _open(self, seed: int, stack: AsyncExitStack) -> Repeat:
        """Opens a repeat's files; other cells get the turn while another process holds one."""
        cell, keys, queue = self.cell, self.cell.keys(seed), self._lane.queue
        shared = self._lane.connections.store

        async def give_turn_away(path: Path) -> None:
            self.progress.say(f"waiting for {path}")
            queue.release(self.number)

        async def open_at(path: Path, make: Callable[[Path], S]) -> S:
            opening = self._lane.stores.open_store(
                path, lambda: make(path), give_turn_away, shared.call
            )
            store = await stack.enter_async_context(opening)
            # Takes the turn back, which was given away if another process held the file.
            await queue.acquire(self.number)
            return store

        answers: RowStore[AnswerRow | IngestRow] = await open_at(
            cell.answers_file(seed),
            lambda path: RowStore(
                path, answers_header(keys, seed), answer_or_ingest, shared.rows(path)
            ),
        )
        verdicts: RowStore[VerdictRow] = await open_at(
            cell.verdicts_file(seed),
            lambda path: RowStore(
                path, verdicts_header(keys, seed), VerdictRow.from_json, shared.rows(path)
            ),
        )
        # Texts need no lock: only the process that holds the answers appends to them.
        is_fresh = bool(cell.config.fresh)
        texts = await open_at(
            texts_file(answers.path),
            lambda path: TextStore(path, shared.texts(path), is_fresh=is_fresh),
        )
        self._report_dropped(answers)
        self._report_dropped(verdicts)
        return Repeat(seed, answers, verdicts, texts, self.judge(seed))

    def _report_dropped(self, rows: RowStore[Any]) -> None:
        if rows.dropped:
            self.progress.say(
                f"  {rows.path}: {counted(rows.dropped, 'line')} torn, damaged, edited or from "
                "another key: skipped"
            )

    def _report_totals(self) -> None:
        """Reports the totals before the work begins, unless reading the data takes long."""
        if not self.knows_totals:
            return

        memories, questions = 0, 0
        for case in self._source.cases():
            memories += len(ids_until(case))
            questions += len(case.questions)

        repeats = self.cell.config.num_runs
        self.expect(repeats * memories, repeats * questions)

    async def _run_cases(self, repeats: Sequence[Repeat], asked: list[EvalCase]) -> None:
        """Works on all cases; each is appended to `asked` when it is started."""
        taken: set[str] = set()
        try:
            async with asyncio.TaskGroup() as group:
                try:
                    for case in self._source.cases():
                        take_ids(case, taken)
                        # Without the sessions' text: `asked` is kept to the end, and the texts of a
                        # file of gigabytes would all be in memory.
                        asked.append(without_turns(case))
                        for repeat in repeats:
                            share = self._share_for(case)
                            await share.enter()
                            task = group.create_task(self._run_case(repeat, case, share))
                            # Not in the task: one that is cancelled before its first step never
                            # gets to its `finally`, and other cells would wait for the room.
                            task.add_done_callback(share.leave)

                        # The next case may be as large as this one: it is read once there is room.
                        await self._lane.window.enter(0)
                        del case, share, task
                finally:
                    # Cells share a data set, and the next one's pass counts from the start.
                    self._data_notes = self.cell.dataset.notes()

                # The next cell begins while the last cases of this one are worked on.
                self._lane.queue.release(self.number)
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors

    def _share_for(self, case: EvalCase) -> WindowShare:
        """Room for a case: a slot per question, up to a share that leaves room for other cases."""
        window = self._lane.window
        open_cases = max(CASES_AHEAD, CASES_EACH * self._lane.processes)
        slots = min(len(case.questions), max(1, window.limit // open_cases))
        return WindowShare(window, slots, text_size(case))

    async def _run_case(self, repeat: Repeat, case: EvalCase, share: WindowShare) -> None:
        """Works on a case while no other cell works on its answers."""
        async with self._lane.stores.unit(repeat.answers.path, case.case_id):
            if self._lane.computing is None:
                await self.work(repeat, case, share)
            else:
                await self._compute(self._lane.computing, repeat, case)

    async def _compute(self, computing: Computing, repeat: Repeat, case: EvalCase) -> None:
        """Computes a case in another process, and stores the results."""
        keeper = Keeper(repeat, self.progress)
        queue = self._lane.queue
        done = await computing.compute(
            lambda: unit_of(self.number, repeat, case), keeper, lambda: queue.is_done
        )
        # Rows contain no metrics: the finished unit returns them.
        repeat.measured.update(done.measured)
        self._notes += done.notes


def _flush(repeats: Sequence[Repeat]) -> None:
    """Waits until the store has all rows and texts. Raises `StorageError` if it refuses one."""
    for repeat in repeats:
        repeat.answers.flush()
        repeat.verdicts.flush()
        repeat.texts.flush()


async def _in_thread(work: Callable[[], T]) -> T:
    """The result of `work`, run in a thread. It writes files: a cancellation waits for its end."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        # Without the shield the cancellation would reach the task, and the thread could not be
        # awaited.
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
