"""The worker's side of a process that computes units of a sweep.

It is forked by a process that is itself forked before the sweep starts any thread or event loop. So
each worker starts with all cells of the plan in its memory, regardless of libraries loaded later,
and a killed worker can be replaced at any time. (A `ProcessPoolExecutor` forks from the process
that uses it, and gives up all of its processes if one is killed.)
"""

import asyncio
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from memeval.errors import WorldError
from memeval.llm.in_flight import in_flight
from memeval.pipeline.execute.unit import Message, WorkUnit
from memeval.pipeline.open.cell import Cell
from memeval.process import started
from memeval.runs.compute.computing import ENDING_S, FAILED, MESSAGE, UnitComputer
from memeval.runs.interrupt import JOB_SIGNALS
from memeval.runs.loop import run_loop

WORK, STOP, SHARE, FINISH = "work", "stop", "share", "finish"
"""Commands: compute a unit, cancel it, change the number of processes that share the limits of
endpoints, and send no new model calls.
"""
END = None
"""The command to end, even if units are under way."""
STATE, FINISHED = "state", "finished"
"""Messages of the process itself: its model calls, and the end of the last one."""
STATE_S = 0.5
"""Seconds between two reports of the state."""


def become_forker(control: socket.socket, cells: Mapping[int, Cell], callers: int) -> NoReturn:
    """Forks a worker for each connection that it receives, until the other side closes.

    It does not act on signals: the process that the user started does.
    """
    # This descriptor is inherited: a signal that comes here would wake the parent's event loop.
    signal.set_wakeup_fd(-1)
    _outlive_signals()
    # Only the processor time of children that were waited for counts as this command's.
    signal.signal(signal.SIGCHLD, _wait_for_ended)
    while True:
        try:
            _, descriptors, *_ = socket.recv_fds(control, 1, 1)
        except OSError:
            descriptors = []

        if not descriptors:
            _wait_for_ended()
            os._exit(0)

        if os.fork() == 0:
            control.close()  # else a worker would keep it open after the forker's death
            _outlive_signals()
            # A system may start programs, and needs to see how they end.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become_worker(Connection(descriptors[0]), cells, callers)

        os.close(descriptors[0])


def _outlive_signals() -> None:
    # A terminal sends Ctrl-C and SIGHUP to every process of the group, a batch system the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A handler, and not SIG_IGN, which programs started by a system would inherit.
    for number in (signal.SIGTERM, signal.SIGHUP, *JOB_SIGNALS):
        signal.signal(number, lambda *_: None)


def _wait_for_ended(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become_worker(connection: Connection, cells: Mapping[int, Cell], callers: int) -> NoReturn:
    """Computes units until the other side sends `END` or closes."""
    status = 1
    with suppress(BaseException):  # the other side sees that this process has ended
        run_loop(_OrderServer(connection, cells, callers).serve())
        status = 0

    with suppress(BaseException):
        sys.stdout.flush()
        started.end_all()

    os._exit(status)


class _OrderServer:
    """Executes the commands from a connection."""

    def __init__(self, connection: Connection, cells: Mapping[int, Cell], callers: int) -> None:
        self._connection = connection
        self._units = UnitComputer(cells, callers)
        self._tasks: dict[int, asyncio.Task[tuple[str, Any]]] = {}
        self._finishing: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Works until the command to end."""
        orders: asyncio.Queue[Any] = asyncio.Queue()
        arguments = (self._connection, asyncio.get_running_loop(), orders)
        # In a thread, which sees `END` even while a system blocks the event loop.
        threading.Thread(target=_read, args=arguments, daemon=True).start()
        reporting = asyncio.create_task(self._report())

        while (order := await orders.get()) is not END:
            kind, number, content = order
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
            self._send(number, MESSAGE, message)

        def send_end(task: asyncio.Task[tuple[str, Any]]) -> None:
            del self._tasks[number]
            # A unit that is stopped before it began has no result.
            end = (FAILED, WorldError("stopped")) if task.cancelled() else task.result()
            with suppress(OSError):  # the other side is gone
                self._send(number, *end)

        task = asyncio.create_task(self._units.compute(unit, send_message))
        self._tasks[number] = task
        task.add_done_callback(send_end)

    async def _finish(self, most_s: float) -> None:
        self._send_state()
        await in_flight.finish(most_s)
        self._send_state()
        self._send(0, FINISHED, None)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(STATE_S)
            self._send_state()

    def _send_state(self) -> None:
        state = self._units.state()
        if state.loads:
            self._send(0, STATE, state)

    def _send(self, number: int, kind: str, content: Any) -> None:
        message = pickle.dumps((number, kind, content), pickle.HIGHEST_PROTOCOL)
        self._connection.send_bytes(message)


def _read(
    connection: Connection, loop: asyncio.AbstractEventLoop, orders: asyncio.Queue[Any]
) -> None:
    """Passes commands on; ends the process `ENDING_S` seconds after `END`, even if a system
    hangs."""
    order: Any
    while True:
        try:
            order = pickle.loads(connection.recv_bytes())
        except (OSError, EOFError):
            order = END

        with suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(orders.put_nowait, order)

        if order is END:
            break

    time.sleep(ENDING_S)
    os._exit(1)
