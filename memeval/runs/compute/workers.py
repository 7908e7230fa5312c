"""Processes that compute the units of a sweep, as the event loop of the sweep sees them.

A unit that only computes has a process to itself. Units that call endpoints share a few processes,
each of which has its part of the request slots: one processor alone is too slow for the replies of
a fast endpoint with many slots.
"""

from __future__ import annotations

import asyncio
import math
import os
import pickle
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any

from memeval.config.roles import called_roles, lowest_limit, settings_of_role
from memeval.errors import WorldError
from memeval.pipeline.execute.unit import SAY, Keeper, UnitDone, WorkUnit
from memeval.pipeline.open.called import limits_of
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import Loads, free_slots
from memeval.process.environment import count_cores
from memeval.runs.compute.computing import MESSAGE, SHARE, State
from memeval.runs.compute.forked import become_forker
from memeval.runs.compute.remote import DiedError, RemoteWorker, stop_workers
from memeval.runs.interrupt import KEYS_THREAD
from memeval.runs.plan import Plan, PlannedCell
from memeval.runs.publish import publisher

TRIES = 2
"""A unit whose process died is retried once."""
SAME_S = 5.0
"""A message that another process sent within this time is not shown again."""
IDLE_S = 2.0
"""After this time without a unit, a process passes its request slots on to the others; immediately
if no more units will follow.
"""
SLOTS = 32
"""Request slots per process: if a reply takes 0.2 s, they keep a processor busy for about two
thirds of the time.
"""


def start_workers(plan: Plan, processes: int | None = None) -> Workers | None:
    """Worker processes, or None if one process is enough."""
    most = processes or count_cores()
    if most < 2 or not may_fork():
        return None

    callers = _count_callers(plan, most)
    cells: dict[int, PlannedCell] = {}
    for planned in plan.open_cells:
        if planned.may_compute_elsewhere and (callers > 1 or not planned.reach):
            cells[planned.number] = planned

    return Workers(cells, most, callers) if cells else None


def _count_callers(plan: Plan, most: int) -> int:
    """Number of processes that call the endpoints of a plan; 1 if this one does."""
    calling = [planned for planned in plan.open_cells if planned.reach]
    slots, lowest = 0, most
    for planned in calling:
        config = planned.cell.config
        # The limit of an endpoint is divided among the processes: all cells are spread, or none.
        if not planned.may_compute_elsewhere or limits_of(config).any:
            return 1

        # Each process needs a slot at each endpoint.
        lowest = min(lowest, lowest_limit(config) or 1)
        for role in called_roles(config.llm):
            slots = max(slots, settings_of_role(config.llm, role).max_concurrency)

    useful = slots // SLOTS
    # Indexing such data takes more processor time than the calls do.
    if any(planned.cell.is_large for planned in calling):
        useful = most

    return max(1, min(useful, lowest))


def start_callers(plan: Plan) -> Workers | None:
    """The processes that call the endpoints of a plan, or None if this one does."""
    return start_workers(plan) if _count_callers(plan, count_cores()) > 1 else None


def may_fork() -> bool:
    """Whether this process may be forked: only if no other thread could hold a lock.

    A program that uses memeval, such as a test runner, may have threads. Then this process computes
    all cells itself.
    """
    harmless = {threading.main_thread().ident}
    for thread in threading.enumerate():
        if thread.name.startswith((KEYS_THREAD, publisher.THREAD)):
            harmless.add(thread.ident)

    # Unlike `threading.enumerate`, the frames (a documented function, in spite of its name) also
    # show threads that were started without the module threading.
    return set(sys._current_frames()) <= harmless


class Workers:
    def __init__(self, planned: Mapping[int, PlannedCell], processes: int, callers: int) -> None:
        """Forks the process that forks the workers: call it before any thread is started.

        `processes` compute, and `callers` share the limit of each endpoint.
        """
        self.processes, self.callers = processes, callers
        self.say: Callable[[str], None] = lambda _: None
        self._planned = planned
        self._control, other = socket.socketpair()
        with warnings.catch_warnings():
            # Any other thread only waits, for Ctrl-C or a publisher, and holds no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._forker = os.fork()

        if self._forker == 0:
            self._control.close()
            cells: dict[int, Cell] = {number: known.cell for number, known in planned.items()}
            become_forker(other, cells, callers)

        other.close()
        self._computing, self._calling = _Pool(processes, self._start), _Pool(callers, self._start)
        self._compute_slots = asyncio.Semaphore(processes)
        self._last_said_at: dict[str, float] = {}
        """When each message was last sent."""

    def takes(self, planned: PlannedCell) -> bool:
        """Whether a cell's units are computed by these processes."""
        return planned.number in self._planned

    def loads(self) -> Iterable[Loads]:
        """The load of each process on the endpoints."""
        return [worker.loads for worker in self._calling.workers]

    async def compute(
        self, unit: Callable[[], WorkUnit], keeper: Keeper, is_last: Callable[[], bool]
    ) -> UnitDone:
        """The result of a unit, which is tried once more if its process died.

        Raises `WorldError` if the second process died as well.
        """
        for tried in range(TRIES):
            if tried:
                keeper.begin_again()

            work = unit()
            with suppress(DiedError):
                if self._planned[work.cell].reach:
                    return await self._call(work, keeper, is_last)

                async with self._compute_slots:
                    return await self._computing.worker().compute(work, keeper)

        raise WorldError(
            f"the process computing the case was killed {TRIES} times: out of memory? "
            "hydra.launcher.processes=1 computes one case at a time"
        )

    async def _call(self, unit: WorkUnit, keeper: Keeper, is_last: Callable[[], bool]) -> UnitDone:
        worker = self._calling.worker()
        worker.share(self._calling.most)
        self._rebalance_soon(is_last())
        try:
            return await worker.compute(unit, keeper)
        finally:
            self._rebalance_soon(is_last())

    def _rebalance_soon(self, is_last: bool) -> None:
        idle_s = 0.0 if is_last else IDLE_S
        asyncio.get_running_loop().call_later(idle_s, self._calling.rebalance, idle_s)

    def _start(self) -> _ForkedWorker:
        ours, theirs = Pipe()
        # If the forker is gone, the connection closes, as that of a worker that died.
        with theirs, suppress(OSError):
            # A descriptor can only be sent with data: the byte itself means nothing.
            socket.send_fds(self._control, [b"w"], [theirs.fileno()])

        return _ForkedWorker(ours, self._is_news)

    def _is_news(self, message: str) -> bool:
        """Whether no process has just sent this message: all of them notice a dead endpoint."""
        now = time.monotonic()
        before, self._last_said_at[message] = self._last_said_at.get(message, -math.inf), now
        return now - before > SAME_S

    async def stop(self) -> None:
        """Stops the workers, which first release what they hold."""
        await stop_workers([*self._computing.workers, *self._calling.workers])

    def close(self) -> None:
        """Ends the process that forks the workers."""
        self._control.close()  # which ends the forker
        with suppress(ChildProcessError):
            os.waitpid(self._forker, 0)


class _Pool:
    """Workers of one kind."""

    def __init__(self, most: int, start: Callable[[], _ForkedWorker]) -> None:
        self.workers: list[_ForkedWorker] = []
        self.most, self._start = most, start
        """The maximum number of workers."""
        self._taken_at = 0.0

    @property
    def _active(self) -> list[_ForkedWorker]:
        return [worker for worker in self.workers if not worker.is_ending]

    def worker(self) -> _ForkedWorker:
        """The worker with the fewest open units; a new one if all are busy and there is room."""
        self._taken_at = time.monotonic()
        active = self._active
        if len(active) < self.most and all(worker.open_count for worker in active):
            taken = {worker.position for worker in active}
            active = [self._start()]
            active[0].position = min(set(range(self.most)) - taken)
            self.workers += active

        return min(active, key=lambda worker: worker.open_count)

    def rebalance(self, idle_s: float) -> None:
        """Divides the request slots of workers that have had no unit for `idle_s` seconds, started
        or not, among the workers with units.
        """
        since, active = time.monotonic() - idle_s, self._active
        idle, kept = [], []
        for worker in active:
            if not worker.open_count and worker.idle_since <= since:
                idle.append(worker)
            else:
                kept.append(worker)

        count = len(kept)
        if self._taken_at > since:
            count += self.most - len(active)
        if count == self.most or not any(worker.open_count for worker in kept):
            return

        self.most = count
        for worker in idle:
            worker.retire()

        for position, worker in enumerate(kept):
            worker.position = position
            worker.share(count)


class _ForkedWorker(RemoteWorker):
    def __init__(self, connection: Connection, is_news: Callable[[str], bool]) -> None:
        """`is_news` says whether a message is to be shown."""
        super().__init__()
        self._shared: tuple[int, int] | None = None
        self._has_left = False
        """Whether others have got its request slots."""
        self._connection, self._is_news = connection, is_news
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection.fileno(), self._read)

    def share(self, processes: int) -> None:
        """Sets how many processes share the limit of each endpoint from now on."""
        before, self._shared = self._shared, (processes, self.position)
        if self._shared != before:
            self.send((SHARE, 0, self._shared))

    def send(self, command: Any) -> None:
        with suppress(OSError):  # the process is gone, which `_read` notices
            self._connection.send_bytes(pickle.dumps(command, pickle.HIGHEST_PROTOCOL))

    def _read(self) -> None:
        try:
            message = pickle.loads(self._connection.recv_bytes())
        except (OSError, EOFError):
            self.close()
        else:
            self.receive(*message)

    def receive(self, number: int, kind: str, content: Any) -> None:
        # A message for the user may be one that another process has just sent.
        if kind != MESSAGE or content[0] != SAY or self._is_news(*content[1]):
            super().receive(number, kind, content)

    def note(self, state: State) -> None:
        super().note(state)
        if self._has_left:
            free_slots(self.loads)

    def retire(self) -> None:
        """Ends the process before the others."""
        self._has_left = True
        free_slots(self.loads)
        self.end()

    def disconnect(self) -> None:
        self._loop.remove_reader(self._connection.fileno())
        self._connection.close()
