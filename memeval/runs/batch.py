"""The cells of a sweep: all of them composed, opened and checked before the first call, and then
run together.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.utils import JobReturn, JobStatus, setup_globals
from omegaconf import DictConfig

from memeval.errors import BudgetError, UserError, WorldError
from memeval.llm.budget import Budget, Limits
from memeval.pipeline.cell import Cell
from memeval.pipeline.opening import OpenedData
from memeval.pipeline.summary import Earlier, earlier
from memeval.runs.cell import check_keys
from memeval.runs.compose.errors import explain, is_about_configs
from memeval.runs.compose.refused import RefusedError
from memeval.runs.compose.sweep import SweepComposer, remember_files
from memeval.runs.interrupt import KEYS_THREAD, run_loop
from memeval.runs.job import hint_after, objective_of, open_job
from memeval.runs.launch.workers import Workers
from memeval.runs.plan import Plan, PlannedCell
from memeval.runs.publish.publishing import Publishing
from memeval.runs.schedule import Computers, Outcome, Schedule
from memeval.runs.session import FailedCell, note_failed
from memeval.runs.spending import confirm_cost, shared_budget
from memeval.runs.sweep_display import SweepDisplay


class Batch:
    """The cells that a sweeper asks for at once."""

    def __init__(
        self,
        loader: ConfigLoader,
        master: DictConfig,
        *,
        keep_going: bool = False,
        budgets: dict[Limits, Budget] | None = None,
    ) -> None:
        """`master` is the composition of what all cells have in common.

        `budgets` are those of the command, with what earlier batches have spent.

        With `keep_going` the cells that can be run are run, whatever the others are like.
        """
        self._loader, self._master, self._keep_going = loader, master, keep_going
        self._budgets = {} if budgets is None else budgets
        self._ends: dict[int, JobReturn] = {}
        self._opened = OpenedData()

    def run(
        self,
        jobs: Sequence[Sequence[str]],
        first: int,
        start: Callable[[Plan], Computers | None],
    ) -> list[JobReturn]:
        """Runs the jobs, the first of which has the number `first`.

        `start` starts what computes beside this process, once the plan is checked.

        Raises `RefusedError` where one can't be run, before any is.
        """
        plan = self.plan(jobs, first)
        budget = shared_budget(plan, self._budgets)
        confirm_cost(plan)
        # Before publishing and display, which start threads: a process with threads must not be
        # forked.
        workers = start(plan)
        publishing = Publishing()
        try:
            with SweepDisplay(plan) as display:
                watcher = _Watcher(display, publishing, self._ends)
                schedule = Schedule(plan, watcher, workers, budget)
                display.connections = schedule.connections
                publishing.start(plan)
                self._run_until_spent(schedule, first)
                publishing.wait()
        finally:
            publishing.close()
            if workers is not None:
                workers.close()

        return [self._ends.get(first + number, _failed_return()) for number in range(len(jobs))]

    def _run_until_spent(self, schedule: Schedule, first: int) -> None:
        try:
            run_loop(schedule.run())
        except BudgetError as error:
            note_failed(FailedCell(first, status=1, message=str(error), hints=[hint_after(error)]))

    def plan(self, jobs: Sequence[Sequence[str]], first: int) -> Plan:
        """The cells of the jobs, composed, opened and checked.

        Raises `RefusedError` where one can't be run.
        """
        # As Hydra's own launchers do: this registers the resolvers that configs use.
        setup_globals()
        errors: list[UserError] = []
        cells: list[PlannedCell] = []
        remember_files(self._loader)
        self._composer = SweepComposer(self._loader, self._master, jobs)

        for number, overrides in enumerate(jobs, start=first):
            try:
                cell = self._open(overrides, number)
                before = Earlier() if cell.config.fresh else earlier(cell)
                # A finished cell makes no call: it needs no key any more.
                if before.summary is None:
                    check_keys(cell.config)

                cells.append(PlannedCell(number, cell, before))
            except UserError as error:
                errors.append(error)
                note_failed(
                    FailedCell(number, status=2, message=error.message, hints=list(error.hints))
                )

        if errors and not self._keep_going:
            raise RefusedError(errors, len(jobs))

        return Plan(cells)

    def _open(self, overrides: Sequence[str], number: int) -> Cell:
        """The cell of a job. Raises `UserError` where it can't be composed or opened."""
        try:
            fields, task = self._composer.compose(overrides, number)
        except Exception as error:
            if is_about_configs(error):
                raise explain(error) from error

            raise

        return open_job(fields, task, self._opened)


class _Watcher:
    """Shows what happens, and has finished cells published."""

    def __init__(
        self, display: SweepDisplay, publishing: Publishing, ends: dict[int, JobReturn]
    ) -> None:
        self._publishing, self._ends = publishing, ends
        self.progress, self.say = display.progress, display.say
        self._display = display

    def ended(self, outcome: Outcome) -> None:
        """Notes a cell's end: its failure at once, its results once they are published."""
        planned = outcome.planned
        self._display.ended(outcome)
        if outcome.summary is not None:
            metric = objective_of(planned.cell, outcome.summary)
            self._ends[planned.number] = _job_return(JobStatus.COMPLETED, metric)
            self._publishing.add(outcome)
            return

        error = outcome.error
        if isinstance(error, UserError):
            note_failed(
                FailedCell(planned.number, status=2, message=error.message, hints=list(error.hints))
            )
        elif isinstance(error, WorldError):
            hint = hint_after(error)
            note_failed(FailedCell(planned.number, status=1, message=str(error), hints=[hint]))
        else:
            # A fault of ours: Hydra raises it again at the end, with its traceback.
            self._ends[planned.number] = _job_return(JobStatus.FAILED, error)


def start_workers(plan: Plan, processes: int | None = None) -> Workers | None:
    """The processes that compute; None where there is nothing for more than one of them."""
    computed = [
        planned
        for planned in plan.open_cells
        if not planned.reach and planned.may_compute_elsewhere
    ]
    processes = processes or count_cores()
    if processes < 2 or not computed or not may_fork():
        return None

    cells = {planned.number: planned.cell for planned in computed}
    return Workers(cells, processes, run_loop)


def may_fork() -> bool:
    """Whether this process may be forked: only where no other thread could hold a lock.

    A program that calls this one, such as a test runner, may have threads of its own. Then this
    process computes all cells itself.
    """
    harmless = {threading.main_thread().ident}
    harmless |= {thread.ident for thread in threading.enumerate() if thread.name == KEYS_THREAD}
    # The frames name threads that were started past the module threading, too.
    return set(sys._current_frames()) <= harmless


def count_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))

    return os.cpu_count() or 1


def _job_return(status: JobStatus, value: Any) -> JobReturn:
    returned = JobReturn(status=status)
    returned.return_value = value
    return returned


def _failed_return() -> JobReturn:
    """What a sweeper gets for a cell whose failure is reported already."""
    # Not FAILED: Hydra would raise the error of the first such job, and end the command with it.
    return _job_return(JobStatus.COMPLETED, None)
