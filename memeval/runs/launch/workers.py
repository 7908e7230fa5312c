"""Processes that compute the units of a sweep, one unit at a time each.

They are forked by a process that is itself forked before this one starts any thread or event loop:
so each worker begins with all cells of the plan in its memory, whatever libraries are loaded later,
and one that was killed can be replaced at any time.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from memeval.errors import WorldError
from memeval.pipeline.cell import Cell
from memeval.pipeline.connections import Connections
from memeval.pipeline.lane import Lane
from memeval.pipeline.stores import Stores
from memeval.pipeline.unit import Keeper, Message, Unit, UnitDone
from memeval.pipeline.window import Window
from memeval.runs.launch.computing import DONE, ENDING_S, FAILED, MESSAGE, UnitComputer
from memeval.runs.plan import PlannedCell

STOP = "stop"
PARENT_S = 1.0
"""Between two looks whether the parent process is there."""
TRIES = 2
"""A unit whose process died is tried once more."""
_LENGTH = struct.Struct("!Q")

RunLoop = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine on an event loop of its own."""


class Workers:
    """The processes, as the event loop sees them."""

    def __init__(self, cells: Mapping[int, Cell], processes: int, run_loop: RunLoop) -> None:
        """Forks the process that forks the workers: call it before any thread is started."""
        self.processes, self.callers = processes, 1
        self.say: Callable[[str], None] = lambda _: None
        self._control, other = socket.socketpair()
        with warnings.catch_warnings():
            # The one thread that there may be waits for Ctrl-C, and holds no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._forker = os.fork()

        if self._forker == 0:
            self._control.close()
            _become_forker(other, cells, run_loop)

        other.close()
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._count = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def takes(self, planned: PlannedCell) -> bool:
        """Whether a cell's units are computed here: those that wait for an endpoint share the
        slots of this process.
        """
        return not planned.reach and planned.may_compute_elsewhere

    async def compute(self, unit: Callable[[], Unit], keeper: Keeper) -> UnitDone:
        """The result of a unit, which is tried once more where its process died.

        Raises `WorldError` where the second process died as well.
        """
        for tried in range(TRIES):
            worker = await self._worker()
            try:
                if tried:
                    keeper.begin_again()

                done = await worker.compute(unit(), keeper)
            except _DiedError:
                self._lose(worker)
            except BaseException:
                self._give(worker)
                raise
            else:
                self._give(worker)
                return done

        raise WorldError(
            f"the process that computed the case was killed {TRIES} times: is memory short? "
            "hydra.launcher.processes=1 computes one case at a time"
        )

    async def _worker(self) -> _Worker:
        """A worker that has nothing to do; a new one while there are fewer than allowed."""
        while not self._idle and self._count >= self.processes:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                await future
            except asyncio.CancelledError:
                # It may have been woken in the same moment: the next one looks in its place.
                self._wake()
                raise

        if self._idle:
            return self._idle.pop()

        # Counted before the first `await`: others that look meanwhile must not start one too many.
        self._count += 1
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                # A descriptor travels only beside data: the byte itself means nothing.
                socket.send_fds(self._control, [b"w"], [theirs.fileno()])

            worker = await _Worker.connect(ours)
        except BaseException:
            self._count -= 1
            self._wake()
            raise

        self._workers.append(worker)
        return worker

    def _give(self, worker: _Worker) -> None:
        if worker.is_broken:
            self._lose(worker)
            return

        self._idle.append(worker)
        self._wake()

    def _lose(self, worker: _Worker) -> None:
        worker.close()
        self._count -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return

    async def stop(self) -> None:
        """Lets the workers go: they end once nobody is connected to them."""
        # All of them are idle, or broken and closed: no unit is under way any more.
        for worker in self._idle:
            worker.close()

        await asyncio.gather(*(worker.wait_closed() for worker in self._workers))

    def close(self) -> None:
        """Lets the process go that forks the workers."""
        self._control.close()  # at which the forker ends
        with suppress(ChildProcessError):
            os.waitpid(self._forker, 0)


class _DiedError(Exception):
    """The process is gone."""


class _Worker:
    """One process, as the event loop sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.is_broken = False

    @classmethod
    async def connect(cls, sock: socket.socket) -> _Worker:
        reader, writer = await asyncio.open_connection(sock=sock, limit=2**22)
        return cls(reader, writer)

    async def compute(self, unit: Unit, keeper: Keeper) -> UnitDone:
        """The result of a unit. Raises `_DiedError` where the process is gone."""
        try:
            await self._send(unit)
            return await self._receive(keeper)
        except (OSError, EOFError) as error:
            raise _DiedError from error
        except asyncio.CancelledError:
            await self._stop(keeper)
            raise

    async def _receive(self, keeper: Keeper) -> UnitDone:
        failure: BaseException | None = None
        while True:
            kind, content = await self._read()
            if kind == DONE and failure is None:
                done: UnitDone = content
                return done

            # A unit that ended well is lost all the same where its rows could not be stored.
            if kind in (DONE, FAILED):
                raise failure or content

            try:
                if failure is None:
                    keeper.keep(content)
            except Exception as error:  # noqa: BLE001 - raised once the process is done with the unit
                failure, self.is_broken = error, True
                await self._send(STOP)

    async def _stop(self, keeper: Keeper) -> None:
        """Asks the process to stop, and keeps what it still sends."""
        self.is_broken = True
        try:
            async with asyncio.timeout(ENDING_S):
                await self._send(STOP)
                await self._receive(keeper)
        except Exception:  # noqa: BLE001 - whatever it says now, the unit is given up
            return

    async def _send(self, content: Any) -> None:
        data = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
        self._writer.write(_LENGTH.pack(len(data)))
        self._writer.write(data)
        await self._writer.drain()

    async def _read(self) -> Any:
        (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
        return pickle.loads(await self._reader.readexactly(length))

    def close(self) -> None:
        self.is_broken = True
        self._writer.close()

    async def wait_closed(self) -> None:
        """Returns when the connection is closed."""
        with suppress(OSError):
            await self._writer.wait_closed()


def _become_forker(control: socket.socket, cells: Mapping[int, Cell], run_loop: RunLoop) -> None:
    """Forks a worker per socket that comes, until the other side is gone. Never returns.

    The process that the user started acts on Ctrl-C and on SIGTERM.
    """
    atexit._clear()  # what is registered belongs to the process that this one is forked from
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
            word, sockets, *_ = socket.recv_fds(control, 1, 1)
        except OSError:
            word, sockets = b"", []

        if not word:
            os._exit(0)

        if os.fork() == 0:
            control.close()  # while a worker held it, nobody could see that the forker is gone
            # A system may start programs of its own, and needs to see how they end.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become_worker(socket.socket(fileno=sockets[0]), cells, run_loop)

        os.close(sockets[0])


def _become_worker(sock: socket.socket, cells: Mapping[int, Cell], run_loop: RunLoop) -> None:
    """Computes units until the other side is gone. Never returns."""
    threading.Thread(target=_end_behind, args=(os.getppid(),), daemon=True).start()
    try:
        run_loop(_Computer(sock, cells).serve())
    except BaseException:  # noqa: BLE001 - the other side sees that this process is gone
        status = 1
    else:
        status = 0

    # `os._exit` does neither: systems may have temporary folders that go at the end.
    with suppress(BaseException):
        sys.stdout.flush()
        atexit._run_exitfuncs()

    os._exit(status)


def _end_behind(parent: int) -> None:
    """Ends this process some time after its parent, even while a system hangs."""
    # A process whose parent is gone gets another one.
    while os.getppid() == parent:
        time.sleep(PARENT_S)

    time.sleep(ENDING_S)
    os._exit(1)


class _Computer:
    """A worker, as it sees itself."""

    def __init__(self, sock: socket.socket, cells: Mapping[int, Cell]) -> None:
        self._socket = sock
        self._units = UnitComputer(cells, Lane(Connections(), Stores(), Window(1)))

    async def serve(self) -> None:
        """Computes what comes, until the other side stops this or is gone."""
        reader, self._writer = await asyncio.open_connection(sock=self._socket, limit=2**22)
        try:
            await self._serve(reader)
        finally:
            self._writer.close()

    async def _serve(self, reader: asyncio.StreamReader) -> None:
        # Read ahead: while a unit is computed, the next thing to come is STOP, or the end.
        upcoming = asyncio.create_task(_next(reader))
        while (content := await upcoming) is not None:
            upcoming = asyncio.create_task(_next(reader))
            if content == STOP:
                continue  # the unit had ended before this came

            task = asyncio.create_task(self._compute(content))
            await asyncio.wait({task, upcoming}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():  # STOP, or nobody is there any more
                task.cancel()
                await asyncio.wait({task})
                return

    async def _compute(self, unit: Unit) -> None:
        self._send(await self._units.compute(unit, self._send_message))
        await self._writer.drain()

    def _send_message(self, message: Message) -> None:
        self._send((MESSAGE, message))

    def _send(self, content: Any) -> None:
        data = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
        self._writer.write(_LENGTH.pack(len(data)) + data)


async def _next(reader: asyncio.StreamReader) -> Any:
    """What comes next; None where the other side is gone."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return pickle.loads(await reader.readexactly(length))
    except (OSError, EOFError):
        return None
