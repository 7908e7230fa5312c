"""Processes that compute the units of a sweep, one unit at a time each.

They are forked by a process that is itself forked before this one starts any thread or event loop:
so each worker begins with all cells of the plan in its memory, whatever libraries are loaded later,
and one that was killed can be replaced at any time. (A `ProcessPoolExecutor` forks from the process
that uses it, and gives up all of its processes if one is killed.)
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any, NoReturn

from memeval.errors import WorldError
from memeval.pipeline.execute.lane import Lane
from memeval.pipeline.execute.stores import Stores
from memeval.pipeline.execute.unit import Keeper, Message, Unit, UnitDone
from memeval.pipeline.execute.window import Window
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import Connections
from memeval.process import started
from memeval.process.cores import count_cores
from memeval.runs.interrupt import KEYS_THREAD, run_loop
from memeval.runs.launch.computing import DONE, ENDING_S, FAILED, MESSAGE, UnitComputer
from memeval.runs.plan import Plan, PlannedCell
from memeval.runs.publish import publisher

TRIES = 2
"""A unit whose process died is retried once."""
END = None
"""Sent in place of a unit: the worker ends, also if a unit is under way."""


def start_workers(plan: Plan, processes: int | None = None) -> Workers | None:
    """Worker processes, or None if one process is enough."""
    computed = [
        planned
        for planned in plan.open_cells
        if not planned.reach and planned.may_compute_elsewhere
    ]
    processes = processes or count_cores()
    if processes < 2 or not computed or not may_fork():
        return None

    cells = {planned.number: planned.cell for planned in computed}
    return Workers(cells, processes)


def may_fork() -> bool:
    """Whether this process may be forked: only if no other thread could hold a lock.

    A program that calls this one, such as a test runner, may have threads. Then this process
    computes all cells itself.
    """
    harmless = {threading.main_thread().ident}
    waiting = (KEYS_THREAD, publisher.THREAD)
    harmless |= {
        thread.ident for thread in threading.enumerate() if thread.name.startswith(waiting)
    }
    # Unlike `threading.enumerate`, the frames (a documented function, in spite of its name) also
    # show threads that were started without the module threading.
    return set(sys._current_frames()) <= harmless


class Workers:
    """The processes, as the event loop sees them."""

    def __init__(self, cells: Mapping[int, Cell], processes: int) -> None:
        """Forks the process that forks the workers: call it before any thread is started."""
        self.processes, self.callers = processes, 1
        self.say: Callable[[str], None] = lambda _: None
        self._control, other = socket.socketpair()
        with warnings.catch_warnings():
            # The only other thread possible waits for Ctrl-C, and holds no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._forker = os.fork()

        if self._forker == 0:
            self._control.close()
            _become_forker(other, cells)

        other.close()
        self._slots = asyncio.Semaphore(processes)
        self._idle: list[_Worker] = []

    def takes(self, planned: PlannedCell) -> bool:
        """Whether a cell's units are computed here: those that wait for an endpoint share the
        slots of this process.
        """
        return not planned.reach and planned.may_compute_elsewhere

    async def compute(self, unit: Callable[[], Unit], keeper: Keeper) -> UnitDone:
        """The result of a unit, which is tried once more if its process died.

        Raises `WorldError` if the second process died as well.
        """
        async with self._slots:
            for tried in range(TRIES):
                worker = self._idle.pop() if self._idle else self._start()
                if tried:
                    keeper.begin_again()

                try:
                    return await worker.compute(unit(), keeper)
                except _DiedError:
                    continue
                finally:
                    if worker.is_ended:
                        worker.close()
                    else:
                        self._idle.append(worker)

        raise WorldError(
            f"the process computing the case was killed {TRIES} times: is memory short? "
            "hydra.launcher.processes=1 computes one case at a time"
        )

    def _start(self) -> _Worker:
        ours, theirs = Pipe()
        with theirs:
            # A descriptor can only be sent with data: the byte itself means nothing.
            socket.send_fds(self._control, [b"w"], [theirs.fileno()])

        return _Worker(ours)

    async def stop(self) -> None:
        """Stops the workers: they end once nobody is connected to them."""
        # All others have ended: no unit is under way any more.
        for worker in self._idle:
            worker.close()

    def close(self) -> None:
        """Lets the process go that forks the workers."""
        self._control.close()  # which ends the forker
        with suppress(ChildProcessError):
            os.waitpid(self._forker, 0)


class _DiedError(Exception):
    """The process is gone."""


class _Worker:
    """One process, as the event loop sees it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._received: asyncio.Queue[Any] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection.fileno(), self._read)
        self.is_ended = False
        """Whether the process is gone, or was asked to end."""

    async def compute(self, unit: Unit, keeper: Keeper) -> UnitDone:
        """The result of a unit. Raises `_DiedError` if the process is gone."""
        self._send(unit)
        try:
            return await self._receive(keeper)
        except asyncio.CancelledError:
            self._send(END)
            # Its remaining messages are kept; in any case the unit is given up.
            with suppress(Exception):
                async with asyncio.timeout(ENDING_S):
                    await self._receive(keeper)

            raise

    async def _receive(self, keeper: Keeper) -> UnitDone:
        failure: Exception | None = None
        while (message := await self._received.get()) is not None:
            kind, content = message
            if kind == DONE and failure is None:
                done: UnitDone = content
                return done

            # A unit that ended well is still lost if its rows could not be stored.
            if kind in (DONE, FAILED):
                raise failure or content

            try:
                if failure is None:
                    keeper.keep(content)
            except Exception as error:  # noqa: BLE001 - raised once the process is done with the unit
                failure = error
                self._send(END)

        raise failure or _DiedError

    def _send(self, content: Unit | None) -> None:
        self.is_ended = self.is_ended or content is END
        with suppress(OSError):  # the process is gone, as `_read` sees
            self._connection.send(content)

    def _read(self) -> None:
        try:
            self._received.put_nowait(self._connection.recv())
        except (OSError, EOFError):
            self._received.put_nowait(None)
            self.close()

    def close(self) -> None:
        """Lets the process go."""
        self.is_ended = True
        if not self._connection.closed:
            self._loop.remove_reader(self._connection.fileno())
            self._connection.close()


def _become_forker(control: socket.socket, cells: Mapping[int, Cell]) -> NoReturn:
    """Forks a worker per connection that comes, until the other side is gone.

    The process that the user started acts on Ctrl-C and on SIGTERM.
    """
    # This descriptor is inherited: a signal that comes here would wake the parent's event loop.
    signal.set_wakeup_fd(-1)
    # A terminal sends Ctrl-C to every process of the group, and a batch system SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A handler, since a program that a system starts would inherit that the signal is ignored.
    signal.signal(signal.SIGTERM, lambda *_: None)
    # Nobody waits for the workers: the kernel removes those that ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        try:
            _, descriptors, *_ = socket.recv_fds(control, 1, 1)
        except OSError:
            descriptors = []

        if not descriptors:
            os._exit(0)

        if os.fork() == 0:
            control.close()  # while a worker held it, the death of the forker went unnoticed
            # A system may start programs, and needs to see how they end.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become_worker(Connection(descriptors[0]), cells)

        os.close(descriptors[0])


def _become_worker(connection: Connection, cells: Mapping[int, Cell]) -> NoReturn:
    """Computes units until the other side ends this or is gone."""
    status = 1
    with suppress(BaseException):  # the other side sees that this process is gone
        run_loop(_serve(connection, cells))
        status = 0

    with suppress(BaseException):
        sys.stdout.flush()
        started.end_all()

    os._exit(status)


async def _serve(connection: Connection, cells: Mapping[int, Cell]) -> None:
    units = UnitComputer(cells, Lane(Connections(), Stores(), Window(1)))
    received: asyncio.Queue[Unit | None] = asyncio.Queue()
    reading = (connection, asyncio.get_running_loop(), received)
    # In a thread: it sees the end also while a system holds up the event loop.
    threading.Thread(target=_read, args=reading, daemon=True).start()

    def send_message(message: Message) -> None:
        connection.send((MESSAGE, message))

    async def compute(unit: Unit) -> None:
        end = await units.compute(unit, send_message)
        with suppress(OSError):  # nobody is there any more
            connection.send(end)

    task: asyncio.Task[None] | None = None
    while (unit := await received.get()) is not END:
        task = asyncio.create_task(compute(unit))

    # Cancelled, it sends how far it came.
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait({task})


def _read(
    connection: Connection, loop: asyncio.AbstractEventLoop, received: asyncio.Queue[Unit | None]
) -> None:
    """Passes units on; ends the process some time after the last one, even if a system hangs."""
    unit: Unit | None
    while True:
        try:
            unit = connection.recv()
        except (OSError, EOFError):
            unit = END

        with suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(received.put_nowait, unit)

        if unit is END:
            break

    time.sleep(ENDING_S)
    os._exit(1)
