"""Runs the cells of a plan: those of a sweep, or one alone, which is a sweep of one."""

from collections.abc import Callable
from pathlib import Path

from memeval.errors import BudgetError
from memeval.llm.budget import Budget, SpendingLimits
from memeval.pipeline.execute.run import CellRun
from memeval.pipeline.open.cell import Cell
from memeval.runs.compute.workers import start_callers
from memeval.runs.display.progress import RunDisplay
from memeval.runs.display.sweep import SweepDisplay
from memeval.runs.invocation import DoneCell, FailedCell, Invocation
from memeval.runs.loop import run_loop
from memeval.runs.plan import CellOutcome, Plan, PlannedCell, earlier_run
from memeval.runs.publish.publishing import Publishing
from memeval.runs.schedule import ComputePool, MakeRun, PlanDisplay, Schedule
from memeval.runs.spending import check_keys, confirm_cost, shared_budget


def run_plan(
    plan: Plan,
    invocation: Invocation,
    start: Callable[[Plan], ComputePool | None],
    *,
    budgets: dict[SpendingLimits, Budget],
    show: Callable[[Plan], PlanDisplay] = SweepDisplay,
    make_run: MakeRun = CellRun,
    processes: int = 1,
) -> dict[int, CellOutcome]:
    """Runs and publishes the remaining work of a plan; returns each cell's outcome by number.

    Cells that could not be run are in the invocation's list of failures. Without workers,
    `processes` share the limit of each endpoint.
    """
    budget = shared_budget(plan, budgets)
    confirm_cost(plan)
    # Before publishing and display, which start threads: a process with threads must not be forked.
    workers = start(plan)
    publishing = Publishing(invocation)
    try:
        publishing.start(plan)
        display = show(plan)
        schedule = Schedule(
            plan,
            display,
            publishing.add,
            workers=workers,
            budget=budget,
            make_run=make_run,
            processes=processes,
        )
        display.watch(schedule.connections)
        with display:
            try:
                run_loop(schedule.run())
            except BudgetError as error:
                publishing.stop(CellOutcome(plan.cells[0], error=error))

            publishing.wait(display.say)
    finally:
        publishing.close()
        if workers is not None:
            workers.close()

    return publishing.outcomes


class _Unlisted(Invocation, frozen=True):
    """The invocation of a run from Python, whose caller gets the outcome."""

    def _append(self, name: str, cell: DoneCell | FailedCell) -> None:
        pass


def run_alone(
    cell: Cell,
    invocation: Invocation | None = None,
    number: int = 0,
    *,
    make_run: MakeRun = CellRun,
    processes: int = 1,
    quiet: bool = False,
) -> CellOutcome:
    """Runs the cell, or uses its finished results, and publishes it.

    `processes` is the number of processes of this command that share the limit of each endpoint.

    Raises `UserError` and `StorageError` before the run, and `StorageError` if its outcome can't be
    noted; the run's own errors are in the outcome.
    """
    before = earlier_run(cell)
    if before.summary is None:
        check_keys(cell.config)

    def start(plan: Plan) -> ComputePool | None:
        return start_callers(plan) if make_run is CellRun and processes == 1 else None

    outcomes = run_plan(
        Plan([PlannedCell(number, cell, before)]),
        invocation or _Unlisted(Path()),
        start,
        budgets={},
        show=lambda _: RunDisplay(cell.name, quiet=quiet),
        make_run=make_run,
        processes=processes,
    )
    return outcomes[number]
