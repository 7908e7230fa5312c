"""The cells of a sweep: all of them composed, opened and checked before the first call, and then
run together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hydra.core.config_loader import ConfigLoader
from hydra.core.utils import JobReturn, JobStatus, setup_globals
from omegaconf import DictConfig

from memeval.display.progress import Countdown
from memeval.errors import BudgetError, RefusedError, UserError, WorldError
from memeval.llm.budget import Budget, Limits
from memeval.pipeline.measure.summary import Earlier, earlier
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.opening import OpenedData
from memeval.runs.cell import check_keys
from memeval.runs.compose.errors import explained
from memeval.runs.compose.sweep import SweepComposer
from memeval.runs.interrupt import run_loop
from memeval.runs.job import failed_cell, objective_of, open_job
from memeval.runs.plan import Plan, PlannedCell
from memeval.runs.publish.publishing import Publishing
from memeval.runs.schedule import Computers, Outcome, Schedule
from memeval.runs.session import Session
from memeval.runs.spending import confirm_cost, shared_budget
from memeval.runs.sweep_display import SweepDisplay


class Batch:
    """The cells that a sweeper asks for at once."""

    def __init__(
        self,
        loader: ConfigLoader,
        master: DictConfig,
        *,
        session: Session,
        keep_going: bool = False,
        budgets: dict[Limits, Budget] | None = None,
    ) -> None:
        """`master` is the composition of what all cells have in common.

        `budgets` are those of the command, with what earlier batches have spent.

        With `keep_going`, the cells that can be run are run in spite of the others.
        """
        self._loader, self._master, self._keep_going = loader, master, keep_going
        self._session = session
        self._budgets = {} if budgets is None else budgets
        self._opened = OpenedData()

    def run(
        self,
        jobs: Sequence[Sequence[str]],
        first: int,
        start: Callable[[Plan], Computers | None],
    ) -> list[JobReturn]:
        """Runs the jobs, the first of which has the number `first`.

        `start` starts what computes beside this process, once the plan is checked.

        Raises `RefusedError` if one can't be run, before any is.
        """
        ends = run_plan(self.plan(jobs, first), self._session, start, budgets=self._budgets)
        return [_job_return(ends.get(first + number)) for number in range(len(jobs))]

    def plan(self, jobs: Sequence[Sequence[str]], first: int) -> Plan:
        """The cells of the jobs, composed, opened and checked.

        Raises `RefusedError` if one can't be run.
        """
        # As Hydra's own launchers do: this registers the resolvers that configs use.
        setup_globals()
        errors: list[UserError] = []
        cells: list[PlannedCell] = []
        self._composer = SweepComposer(self._loader, self._master, jobs)

        countdown = Countdown(f"checking {len(jobs)} runs", len(jobs))
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
                self._session.note_failed(failed_cell(number, error))

            countdown.done()

        if errors and not self._keep_going:
            raise RefusedError(errors, len(jobs))

        return Plan(cells)

    def _open(self, overrides: Sequence[str], number: int) -> Cell:
        """The cell of a job. Raises `UserError` if it can't be composed or opened."""
        with explained():
            fields, task = self._composer.compose(overrides, number)

        return open_job(fields, task, self._opened)


def run_plan(
    plan: Plan,
    session: Session,
    start: Callable[[Plan], Computers | None],
    *,
    budgets: dict[Limits, Budget] | None = None,
    show: Callable[[Plan], SweepDisplay] = SweepDisplay,
) -> dict[int, Outcome]:
    """Runs the remaining work of a plan, and publishes it; returns the cells' ends by number.

    Cells that could not be run are in the session's list of failures.
    """
    budget = shared_budget(plan, {} if budgets is None else budgets)
    confirm_cost(plan)
    # Before publishing and display, which start threads: a process with threads must not be forked.
    workers = start(plan)
    publishing = Publishing(session)
    ends: dict[int, Outcome] = {}
    try:
        with show(plan) as display:
            watcher = _Watcher(display, publishing, session, ends)
            schedule = Schedule(plan, watcher, workers, budget)
            display.watch(schedule.connections)
            publishing.start(plan)
            try:
                run_loop(schedule.run())
            except BudgetError as error:
                first = min((planned.number for planned in plan.cells), default=0)
                session.note_failed(failed_cell(first, error))

            publishing.wait(display.say)
    finally:
        publishing.close()
        if workers is not None:
            workers.close()

    return ends


class _Watcher:
    """Shows what happens, and has finished cells published."""

    def __init__(
        self,
        display: SweepDisplay,
        publishing: Publishing,
        session: Session,
        ends: dict[int, Outcome],
    ) -> None:
        self._publishing, self._session, self._ends = publishing, session, ends
        self.progress, self.say = display.progress, display.say
        self._display = display

    def ended(self, outcome: Outcome) -> None:
        """Notes a cell's end: its failure at once, its results once they are published."""
        self._display.ended(outcome)
        self._ends[outcome.planned.number] = outcome
        if outcome.summary is not None:
            self._publishing.add(outcome)
        elif isinstance(outcome.error, UserError | WorldError):
            self._session.note_failed(failed_cell(outcome.planned.number, outcome.error))


def _job_return(outcome: Outcome | None) -> JobReturn:
    """Return value of a job for a sweeper."""
    if outcome is not None and outcome.summary is not None:
        returned = JobReturn(status=JobStatus.COMPLETED)
        returned.return_value = objective_of(outcome.planned.cell, outcome.summary)
        return returned

    error = None if outcome is None else outcome.error
    if error is None or isinstance(error, UserError | WorldError):
        # Reported already, and not FAILED: Hydra would raise the error of the first such job, and
        # end the command with it.
        returned = JobReturn(status=JobStatus.COMPLETED)
        returned.return_value = None
        return returned

    # A fault of ours: Hydra raises it again at the end, with its traceback.
    returned = JobReturn(status=JobStatus.FAILED)
    returned.return_value = error
    return returned
