"""Computes units in any process, and passes their messages to the process of the sweep."""

import asyncio
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
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
    Message,
    Send,
    SentProgress,
    WorkUnit,
    compute_unit,
)
from memeval.pipeline.execute.window import Window
from memeval.pipeline.open.called import run_with_breaker
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import Connections, Loads
from memeval.store.opening import open_store

WORK, STOP, SHARE, FINISH = "work", "stop", "share", "finish"
"""Commands: compute a unit, cancel it, change the number of processes that share the limits of
endpoints, and send no new model calls.
"""
END = None
"""The command to end, even if units are under way."""
DONE, FAILED, MESSAGE = "done", "failed", "message"
"""Messages of a unit: its results, its error, and what it sends while it is computed."""
STATE, FINISHED = "state", "finished"
"""Messages of the process itself: its model calls, and the end of the last one."""
STATE_S = 0.5
"""Seconds between two reports of the state."""
ENDING_S = 8.0
"""Time limit for a stopping worker to end its calls in progress."""
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


class CommandServer:
    """Executes the commands of the process of the sweep."""

    def __init__(self, units: UnitComputer, send: Callable[[Any], object]) -> None:
        """`send` sends a message to the process of the sweep."""
        self._units, self._send = units, send
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._commands: asyncio.Queue[Any] = asyncio.Queue()
        self._tasks: dict[int, asyncio.Task[tuple[str, Any]]] = {}
        self._finishing: asyncio.Task[None] | None = None

    def enqueue(self, command: Any) -> None:
        """Passes on a command from another thread; the first one waits for `serve` or `close`."""
        with suppress(RuntimeError, CancelledError):  # the loop is closed, or never began
            self._loop.result().call_soon_threadsafe(self._commands.put_nowait, command)

    def close(self) -> None:
        """Ends the waits of commands, in case `serve` could not begin."""
        self._loop.cancel()

    async def serve(self) -> None:
        """Works until the command to end."""
        self._loop.set_result(asyncio.get_running_loop())
        reporting = asyncio.create_task(self._report())

        while (command := await self._commands.get()) is not END:
            kind, number, content = command
            if kind == WORK:
                self._begin(number, content)
            elif kind == SHARE:
                self._units.share(*content)
            elif kind == FINISH:
                self._finishing = asyncio.create_task(self._finish(content))
            elif number in self._tasks:
                self._tasks[number].cancel()

        # Each cancelled unit still sends its end.
        remaining = list(self._tasks.values())
        for task in (reporting, *remaining):
            task.cancel()

        if remaining:
            await asyncio.wait(remaining)

        await self._units.aclose()
        self._send_state()

    def _begin(self, number: int, unit: WorkUnit) -> None:
        """Computes a unit, and sends its outcome."""

        def send_message(message: Message) -> None:
            self._send((number, MESSAGE, message))

        def send_end(task: asyncio.Task[tuple[str, Any]]) -> None:
            del self._tasks[number]
            # A unit that is stopped before it began has no result.
            end = (FAILED, WorldError("stopped")) if task.cancelled() else task.result()
            with suppress(OSError):  # the other side is gone
                self._send((number, *end))

        task = asyncio.create_task(self._units.compute(unit, send_message))
        self._tasks[number] = task
        task.add_done_callback(send_end)

    async def _finish(self, most_s: float) -> None:
        self._send_state()
        await in_flight.finish(most_s)
        self._send_state()
        self._send((0, FINISHED, None))

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(STATE_S)
            self._send_state()

    def _send_state(self) -> None:
        state = self._units.state()
        if state.loads:
            self._send((0, STATE, state))


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
