"""The cells of a sweep: composes, opens and checks all of them before the first call, and then runs
them together.
"""

from collections.abc import Callable, Sequence

from hydra.core.config_loader import ConfigLoader
from hydra.core.utils import JobReturn, JobStatus, setup_globals
from omegaconf import DictConfig

from memeval.errors import BudgetError, RefusedError, UserError, WorldError
from memeval.llm.budget import Budget, SpendingLimits
from memeval.pipeline.open.opening import OpenedData
from memeval.runs.cell import check_keys
from memeval.runs.compose.errors import explaining_config_errors
from memeval.runs.compose.sweep import SweepComposer
from memeval.runs.display.progress import Countdown
from memeval.runs.display.sweep import SweepDisplay
from memeval.runs.invocation import Invocation
from memeval.runs.job import failed_cell, objective_of, open_job
from memeval.runs.loop import run_loop
from memeval.runs.plan import CellOutcome, Plan, PlannedCell, earlier_run
from memeval.runs.publish.publishing import Publishing
from memeval.runs.schedule import ComputePool, Schedule
from memeval.runs.spending import confirm_cost, shared_budget


def plan_jobs(
    loader: ConfigLoader,
    master: DictConfig,
    jobs: Sequence[Sequence[str]],
    first: int,
    *,
    invocation: Invocation,
    keep_going: bool,
) -> Plan:
    """The cells of a batch of jobs that a sweeper requests, composed, opened and checked.

    `master` is the composition that all cells have in common, and `first` the number of the first
    job. With `keep_going`, the valid cells run even if others can't.

    Without it, raises `RefusedError` if a cell can't be run.
    """
    # As Hydra's own launchers do: this registers the resolvers that configs use.
    setup_globals()
    composer, opened = SweepComposer(loader, master, jobs), OpenedData()
    errors: list[UserError] = []
    cells: list[PlannedCell] = []

    countdown = Countdown(f"checking {len(jobs)} runs", len(jobs))
    for number, overrides in enumerate(jobs, start=first):
        try:
            with explaining_config_errors():
                fields, task = composer.compose(overrides, number)

            cell = open_job(fields, task, opened)
            before = earlier_run(cell)
            # A finished cell makes no calls, so it needs no key.
            if before.summary is None:
                check_keys(cell.config)

            cells.append(PlannedCell(number, cell, before))
        except UserError as error:
            errors.append(error)
            invocation.note_failed(failed_cell(number, error))

        countdown.done()

    if errors and not keep_going:
        raise RefusedError(errors, len(jobs))

    return Plan(cells)


def run_plan(
    plan: Plan,
    invocation: Invocation,
    start: Callable[[Plan], ComputePool | None],
    *,
    budgets: dict[SpendingLimits, Budget],
    show: Callable[[Plan], SweepDisplay] = SweepDisplay,
) -> dict[int, CellOutcome]:
    """Runs and publishes the remaining work of a plan; returns each cell's outcome by number.

    Cells that could not be run are in the invocation's list of failures.
    """
    budget = shared_budget(plan, budgets)
    confirm_cost(plan)
    # Before publishing and display, which start threads: a process with threads must not be forked.
    workers = start(plan)
    publishing = Publishing(invocation)
    ends: dict[int, CellOutcome] = {}

    def note_end(outcome: CellOutcome) -> None:
        """Notes a failure immediately, and results once they are published."""
        ends[outcome.planned.number] = outcome
        if outcome.summary is not None:
            publishing.add(outcome)
        elif isinstance(outcome.error, UserError | WorldError):
            invocation.note_failed(failed_cell(outcome.planned.number, outcome.error))

    try:
        with show(plan) as display:
            schedule = Schedule(plan, display, note_end, workers=workers, budget=budget)
            display.watch(schedule.connections)
            publishing.start(plan)
            try:
                run_loop(schedule.run())
            except BudgetError as error:
                first = min((planned.number for planned in plan.cells), default=0)
                invocation.note_failed(failed_cell(first, error))

            publishing.wait(display.say)
    finally:
        publishing.close()
        if workers is not None:
            workers.close()

    return ends


def job_return(outcome: CellOutcome | None) -> JobReturn:
    returned = JobReturn(status=JobStatus.COMPLETED)
    returned.return_value = None
    if outcome is None:
        return returned

    if outcome.summary is not None:
        returned.return_value = objective_of(outcome.planned.cell, outcome.summary)
    elif outcome.error is not None and not isinstance(outcome.error, UserError | WorldError):
        # Only a bug in memeval is returned as an error: Hydra raises it at the end, with its
        # traceback. Other errors are already reported, and Hydra would end the command at the first
        # one.
        returned.status, returned.return_value = JobStatus.FAILED, outcome.error

    return returned
