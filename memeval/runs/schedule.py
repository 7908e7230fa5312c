"""Runs the cells of a plan side by side.

All cells that wait for the same endpoints are one stream of work: the cases of the first cell come
first, and when they no longer keep all slots busy, those of the next cell follow. Cells that only
compute are spread over processes.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from memeval.config.paths import cache_dir
from memeval.config.schema import StoreConfig
from memeval.errors import UserError, WorldError
from memeval.llm.budget import Budget
from memeval.pipeline.execute.lane import Computing, Lane
from memeval.pipeline.execute.run import CellRun, window_limit
from memeval.pipeline.execute.stores import Stores
from memeval.pipeline.execute.window import Window
from memeval.pipeline.measure.summary import finish, read_earlier
from memeval.pipeline.open.connections import Connections
from memeval.runs.display.progress import RunDisplay
from memeval.runs.display.sweep import SweepDisplay
from memeval.runs.loop import CANCELLED
from memeval.runs.plan import CellOutcome, Plan, PlannedCell, Reach, say_damage
from memeval.store.contract import Store
from memeval.store.opening import open_memories, open_store

PlanDisplay = SweepDisplay | RunDisplay
MakeRun = Callable[..., CellRun]
"""Creates the run of a cell: `CellRun`, or with arguments that replace its answers or its judge."""


class ComputePool(Computing, Protocol):
    """Other processes that compute units of a plan."""

    processes: int
    say: Callable[[str], None]
    """Receives notes about them for the user."""

    def takes(self, planned: PlannedCell) -> bool:
        """Whether the units of a cell are computed there."""

    def close(self) -> None:
        """Releases the remaining resources, once no event loop is running."""


class _LaneKey(Struct, frozen=True):
    """Key of the cells that share a lane."""

    reach: Reach
    elsewhere: bool
    """Whether other processes compute their units."""


class Schedule:
    """One pass over a plan."""

    def __init__(
        self,
        plan: Plan,
        display: PlanDisplay,
        note_end: Callable[[CellOutcome], None],
        *,
        workers: ComputePool | None,
        budget: Budget | None,
        make_run: MakeRun,
        processes: int,
    ) -> None:
        """`note_end` is called with the outcome of each cell; `workers` compute the cells that
        other processes can compute; `budget` limits all calls. Without workers, `processes` share
        the limit of each endpoint.
        """
        self._plan, self._display, self._note_end = plan, display, note_end
        self._workers, self._make_run = workers, make_run
        self.connections = Connections(
            display.say,
            _store_of(plan, display.say),
            budget,
            processes=processes if workers is None else workers.callers,
            loads_elsewhere=tuple if workers is None else workers.loads,
        )
        if workers is not None:
            workers.say = display.say

        self._stores = Stores()
        self._lanes: dict[_LaneKey, Lane] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The task of the first cell of each run key."""
        self._stopping = False

    async def run(self) -> None:
        """Runs the unfinished cells.

        A cell that fails is reported, and the others continue. Raises `CancelledError` after
        Ctrl-C, once everything under way has ended, and `BudgetError` if the budget is spent.
        """
        work, budget = self._run_all(), self.connections.budget
        if budget is not None:
            work = budget.run(work)

        await work

    async def _run_all(self) -> None:
        for planned in self._plan.open_cells:
            key = self._lane_key(planned)
            if key not in self._lanes:
                self._lanes[key] = self._make_lane(key)

        tasks = [asyncio.create_task(self._run(planned)) for planned in self._plan.cells]
        try:
            if tasks:
                await asyncio.wait(tasks)

            # A cell's own errors are outcomes; any other error concerns its list or its display.
            for task in tasks:
                task.result()
        except asyncio.CancelledError:
            self._stopping = True
            for task in tasks:
                task.cancel()

            await asyncio.wait(tasks)
            raise
        finally:
            await self.connections.aclose()
            if self._workers is not None:
                await self._workers.stop()

    def _lane_key(self, planned: PlannedCell) -> _LaneKey:
        elsewhere = self._workers is not None and self._workers.takes(planned)
        return _LaneKey(planned.reach, elsewhere)

    def _make_lane(self, key: _LaneKey) -> Lane:
        cells = [planned for planned in self._plan.open_cells if self._lane_key(planned) == key]
        limit = max(window_limit(planned.cell) for planned in cells)
        computing = self._workers if key.elsewhere else None
        processes = 0
        if computing is not None:
            processes = computing.callers if key.reach else computing.processes
            # One case more than there are processes, to be read while they compute.
            limit = max(limit, processes + 1)

        window = Window(limit)
        return Lane(
            self.connections, self._stores, window, computing=computing, processes=processes
        )

    async def _run(self, planned: PlannedCell) -> None:
        key = planned.cell.run_key
        task = asyncio.current_task()
        assert task is not None
        first = self._tasks.setdefault(key, task)
        try:
            # Two cells may have one key, and so one folder: the second uses the first one's
            # results.
            if first is not task:
                await asyncio.wait({first})
                planned = PlannedCell(planned.number, planned.cell, read_earlier(planned.cell))

            self._report_end(await self._outcome(planned))
        except asyncio.CancelledError:
            if self._stopping:
                raise

            # memeval itself did not cancel this cell.
            self._report_end(CellOutcome(planned, error=WorldError(CANCELLED)))

    def _report_end(self, outcome: CellOutcome) -> None:
        self._display.report_end(outcome)
        self._note_end(outcome)

    async def _outcome(self, planned: PlannedCell) -> CellOutcome:
        cell, before = planned.cell, planned.earlier
        if before.summary is not None:
            return CellOutcome(planned, before.summary, reused=True)

        progress = self._display.progress(planned)
        say_damage(cell, before, progress)
        lane = self._lanes[self._lane_key(planned)]
        run = self._make_run(cell, progress, lane=lane, number=planned.number)
        try:
            summary = await run.run(lambda finished: finish(cell, finished))
        except asyncio.CancelledError:
            # The budget was spent: the cell wrote its results before it was cancelled.
            if run.stopped is not None:
                self._report_end(CellOutcome(planned, run.stopped))

            raise
        except Exception as error:  # noqa: BLE001 - the boundary of a cell: the others go on
            return CellOutcome(planned, error=error)

        return CellOutcome(planned, summary)


def _store_of(plan: Plan, say: Callable[[str], None]) -> Store:
    """The store of all cells.

    Raises `UserError` if they name several, or one that can't be reached.
    """
    stores = [planned.cell.config.store for planned in plan.open_cells] or [StoreConfig()]
    if any(store != stores[0] for store in stores):
        raise UserError("store.url and store.patience_s must be the same for all runs of a sweep")

    # An unreachable store is the user's mistake here, but an outside fault during a run.
    open_memories(stores[0], say)
    return open_store(stores[0], cache_dir(), say)
