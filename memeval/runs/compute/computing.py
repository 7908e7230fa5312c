"""Computes units in any process, and passes their messages to the process of the sweep."""

import asyncio
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from memeval.config.paths import cache_dir
from memeval.errors import WorldError
from memeval.llm.in_flight import in_flight
from memeval.pipeline.execute.lane import Lane
from memeval.pipeline.execute.run import CellRun
from memeval.pipeline.execute.stores import Stores
from memeval.pipeline.execute.unit import (
    SAY,
    Keeper,
    Message,
    Send,
    SentProgress,
    UnitDone,
    WorkUnit,
    compute_unit,
)
from memeval.pipeline.execute.window import Window
from memeval.pipeline.open.called import run_with_breaker
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import Connections, Loads
from memeval.store.opening import open_store

DONE, FAILED, MESSAGE = "done", "failed", "message"
ENDING_S = 8.0
"""Time limit for a stopping worker to end its calls in progress."""
LEAVING_S = 3.0
"""Time limit for a worker to release its resources at the end."""
IDLE_RUNS = 2
"""Number of runs that are kept without a unit under way: units come cell by cell, so the runs of
earlier cells are no longer needed.
"""

_send_of_unit: ContextVar[Send] = ContextVar("_send_of_unit")
"""Callback that sends the messages of the unit under way: units of one cell share a run."""


class State(Struct, frozen=True):
    """The model calls of a process."""

    loads: Loads
    under_way: int
    sent: int
    lost: int


class UnitComputer:
    """Computes the units of a plan's cells, several at once."""

    def __init__(self, cells: Mapping[int, Cell], processes: int) -> None:
        """`processes` is the number of processes that share the limit of each endpoint."""
        self._cells, self._processes = cells, processes
        self._position: int | None = None
        self._lane: Lane | None = None
        """Opened for the first unit, so that the unit reports a failure to open it."""
        self._runs: OrderedDict[int, CellRun] = OrderedDict()
        self._under_way: dict[int, int] = {}

    async def compute(self, unit: WorkUnit, send: Send) -> tuple[str, Any]:
        """Computes a unit; returns DONE with its result, or FAILED with the error."""
        _send_of_unit.set(send)
        number = unit.cell
        self._under_way[number] = self._under_way.get(number, 0) + 1
        try:
            cell, work = self._cells[number], compute_unit(self._run(number), unit, send)
            return DONE, await run_with_breaker(cell, self._open_lane().connections.breaker, work)
        except asyncio.CancelledError:
            # Returned, not raised: the other side reads until the unit's end.
            return FAILED, WorldError("stopped")
        except BaseException as error:  # noqa: BLE001 - raised again by what waits for the unit
            return FAILED, _portable(error)
        finally:
            self._under_way[number] -= 1
            self._forget_idle()

    def _open_lane(self) -> Lane:
        if self._lane is None:
            store = open_store(next(iter(self._cells.values())).config.store, cache_dir(), say)
            connections = Connections(say, store, processes=self._processes)
            if self._position is not None:
                connections.share(self._processes, self._position)

            # This process hands out no cases, so the window is never entered.
            self._lane = Lane(connections, Stores(), Window(1))

        return self._lane

    def share(self, processes: int, position: int) -> None:
        """See `Connections.share`."""
        self._processes, self._position = processes, position
        if self._lane is not None:
            self._lane.connections.share(processes, position)

    def state(self) -> State:
        """The model calls of this process, and its load on the endpoints."""
        loads = {} if self._lane is None else self._lane.connections.own_loads()
        return State(loads, in_flight.under_way, in_flight.sent, in_flight.lost)

    async def aclose(self) -> None:
        if self._lane is not None:
            await self._lane.connections.aclose()

    def _run(self, number: int) -> CellRun:
        if number not in self._runs:
            run = CellRun(self._cells[number], SentProgress(send_message), lane=self._open_lane())
            run.begin()
            self._runs[number] = run

        self._runs.move_to_end(number)
        return self._runs[number]

    def _forget_idle(self) -> None:
        idle = [number for number in self._runs if not self._under_way[number]]
        for number in idle[:-IDLE_RUNS]:
            del self._runs[number], self._under_way[number]


class DiedError(Exception):
    """The process is gone."""


class SentUnit:
    """A unit that another process computes, as the event loop of the sweep sees it."""

    def __init__(self, keeper: Keeper, stop: Callable[[], object]) -> None:
        """`stop` asks the process to cancel the unit."""
        self._keeper, self._stop = keeper, stop
        self.done: asyncio.Future[UnitDone] = asyncio.get_running_loop().create_future()
        self._failure: Exception | None = None
        """The reason why a result could not be stored: the unit then fails in any case."""

    def accept(self, kind: str, content: Any) -> None:
        """Stores a message of the unit, or ends it."""
        if kind == MESSAGE:
            self._keep(content)
        elif self._failure is not None or kind == FAILED:
            self.fail(self._failure or content)
        elif not self.done.done():
            self.done.set_result(content)

    def _keep(self, content: Any) -> None:
        try:
            if self._failure is None:
                self._keeper.keep(content)
        except Exception as error:  # noqa: BLE001 - raised once the process is done with the unit
            self._failure = error
            self._stop()

    def fail(self, error: BaseException) -> None:
        """Ends the unit with an error."""
        if not self.done.done():
            self.done.set_exception(error)
            # Retrieved even if nothing waits for it any more: otherwise asyncio would log it.
            self.done.exception()

    async def result(self) -> UnitDone:
        """Waits for the end. Raises its error; after a cancellation, messages that still arrive
        are kept for a while, and then the unit is given up.
        """
        try:
            return await asyncio.shield(self.done)
        except asyncio.CancelledError:
            self._stop()
            await asyncio.wait({self.done}, timeout=ENDING_S)
            raise


def say(message: str) -> None:
    """Reports a message to the user, among the messages of the unit under way."""
    send_message((SAY, (message,)))


def send_message(message: Message) -> None:
    """Sends a message of the unit under way; a message outside of any unit is dropped."""
    send = _send_of_unit.get(None)
    if send is not None:
        send(message)


def _portable(error: BaseException) -> BaseException:
    """The error, or a `RuntimeError` with its text if it can't be pickled."""
    # Both ways: an exception whose constructor takes other arguments fails only on unpickling.
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - a user's error may be anything
        return RuntimeError(f"{type(error).__name__}: {error}")

    return error
