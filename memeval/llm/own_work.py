"""The time of a system's own work, without model calls, queues, locks and the process's concurrent
work. A latency that included waits for the event loop would grow with the number of questions under
way, so it would compare positions in a queue instead of systems.
"""

import asyncio
import gc
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from msgspec import Struct

if sys.platform == "linux":
    from resource import RUSAGE_THREAD, getrusage

T = TypeVar("T")
Clock = Callable[[], float]

UNSURE_SHARE, UNSURE_S = 0.1, 0.0005
"""A duration counts as unmeasured if its uncertain part exceeds this share of it + `UNSURE_S`."""
SWITCH_S = 0.01
"""Longer waits of a thread are not for Python's lock, which is released every 5 ms."""


class _Collector(threading.local):
    """Garbage collection time on a thread: the collector walks all objects of the process."""

    seconds = 0.0
    _began = 0.0

    def note(self, phase: str, _: Mapping[str, int]) -> None:
        # Called once per block: of two ends in a row, the second one adds nothing.
        now = time.thread_time()
        if phase == "stop":
            self.seconds += now - self._began

        self._began = now


_collector = _Collector()


@contextmanager
def noting_collections() -> Iterator[None]:
    """Inside the block, `thread_time` leaves out garbage collection.

    Not outside: a Ctrl-C that arrives during the callback would be lost.
    """
    gc.callbacks.append(_collector.note)
    try:
        yield
    finally:
        gc.callbacks.remove(_collector.note)


def thread_time() -> float:
    """Processor time of this thread in seconds, without garbage collection."""
    return time.thread_time() - _collector.seconds


def _waits_of_thread() -> int:
    """Number of voluntary waits of this thread; -1 if the operating system does not report it."""
    return getrusage(RUSAGE_THREAD).ru_nvcsw if sys.platform == "linux" else -1


class Clocks(Struct, frozen=True):
    """The clocks that are read, in seconds."""

    wall: Clock = time.perf_counter
    thread: Clock = thread_time
    """Processor time of the calling thread, without garbage collection."""
    process: Clock = time.process_time
    """Processor time of all threads of the process."""
    waits: Callable[[], int] = _waits_of_thread
    """Voluntary waits of the calling thread so far; -1 if unknown."""


class _Marks(Struct, frozen=True):
    """The clocks' values at the beginning of a stretch."""

    wall: float
    thread: float
    process: float
    waits: int


class OwnWork:
    """Adds up a system's own work on one question or one ingest.

    A stretch of code on a thread counts with its processor time and its own waits: for a disk, a
    sleep, another program. A wait of a coroutine counts with its wall time. Time that other work of
    this process took meanwhile is subtracted.
    """

    def __init__(self, clocks: Clocks = Clocks()) -> None:
        self.seconds = 0.0
        self._unsure_s = 0.0
        """Subtracted time that may have been the system's own wait."""
        self._clocks = clocks
        self._marks: _Marks | None = None
        self._is_running = False
        self._only_computes = False
        self._exclusions = 0
        self._excluded_since = self._excluded_s = 0.0

    @property
    def measured_s(self) -> float | None:
        """The seconds; None if too much time was subtracted that may have been the system's own."""
        return self.measured_since((0.0, 0.0))

    def mark(self) -> tuple[float, float]:
        """The beginning of a part, for `measured_since`."""
        return self.seconds, self._unsure_s

    def measured_since(self, mark: tuple[float, float]) -> float | None:
        """The seconds since a mark; None as in `measured_s`."""
        seconds, unsure_s = self.seconds - mark[0], self._unsure_s - mark[1]
        return seconds if unsure_s <= UNSURE_SHARE * seconds + UNSURE_S else None

    @contextmanager
    def running(self, *, in_thread: bool = False) -> Iterator[None]:
        """Times a stretch of the system's code, on a worker thread or the event loop's thread."""
        self._run()
        try:
            yield
        finally:
            self._rest(in_thread=in_thread)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Stops timing a worker thread while it waits for a part timed on the event loop."""
        self._rest(in_thread=True)
        try:
            yield
        finally:
            self._run()

    @contextmanager
    def excluded(self) -> Iterator[None]:
        """Excludes a model call or a wait in a queue, which are not the system's own work."""
        if not self._exclusions:
            self._pause()
            self._excluded_since = self._clocks.wall()

        self._exclusions += 1
        try:
            yield
        finally:
            self._exclusions -= 1
            if not self._exclusions:
                self._excluded_s += self._clocks.wall() - self._excluded_since
                self._continue()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """A part that never blocks: only processor time and the waits of coroutines count."""
        self._pause()
        self._only_computes = True
        self._continue()
        try:
            yield
        finally:
            self._pause()
            self._only_computes = False
            self._continue()

    def begin_wait(self) -> tuple[float, float, float] | None:
        """Notes that a coroutine begins to wait; the result is passed to `end_wait`."""
        if self._exclusions:
            return None

        return self._clocks.wall(), self._clocks.thread(), self._excluded_s

    def end_wait(self, began: tuple[float, float, float] | None) -> None:
        """Adds the wait of a coroutine, without the other work of the event loop's thread."""
        if began is None:
            return

        wall, thread, excluded_s = began
        waited = max(self._clocks.wall() - wall - (self._excluded_s - excluded_s), 0.0)
        others = min(max(self._clocks.thread() - thread, 0.0), waited)
        self.seconds += waited - others
        self._unsure_s += others

    def add(self, seconds: float) -> None:
        """Adds a span that was measured elsewhere, such as that of a request."""
        self.seconds += seconds

    async def in_worker(self, work: Callable[..., T], *arguments: Any) -> T:
        """The result of `work` in a worker thread; only processor time counts."""
        with self.excluded():
            return await asyncio.to_thread(self._timed, self._clocks.thread, work, *arguments)

    async def in_pool(self, pool: Executor, request: Callable[..., T], *arguments: Any) -> T:
        """The result of a blocking `request` in a pool's thread; counts wall time, not queueing."""
        loop, clock = asyncio.get_running_loop(), self._clocks.wall
        with self.excluded():
            return await loop.run_in_executor(pool, self._timed, clock, request, *arguments)

    def _timed(self, clock: Clock, work: Callable[..., T], *arguments: Any) -> T:
        """The result of `work`, whose time by a clock is added."""
        began = clock()
        try:
            return work(*arguments)
        finally:
            self.add(clock() - began)

    @asynccontextmanager
    async def holding(self, lock: asyncio.Lock) -> AsyncIterator[None]:
        """Holds a lock; the wait for it does not count."""
        with self.excluded():
            await lock.acquire()

        try:
            yield
        finally:
            lock.release()

    def _run(self) -> None:
        self._is_running = True
        self._continue()

    def _rest(self, *, in_thread: bool) -> None:
        self._pause(in_thread=in_thread)
        self._is_running = False

    def _continue(self) -> None:
        if self._is_running and not self._exclusions:
            clocks = self._clocks
            self._marks = _Marks(clocks.wall(), clocks.thread(), clocks.process(), clocks.waits())

    def _pause(self, *, in_thread: bool = False) -> None:
        """Adds the stretch that has run so far."""
        began, self._marks = self._marks, None
        if began is None:
            return

        clocks = self._clocks
        waits = clocks.waits() - began.waits
        wall, thread = clocks.wall() - began.wall, clocks.thread() - began.thread
        self.seconds += thread
        # A thread that never waited was only delayed by other programs.
        if self._only_computes or (not waits and began.waits >= 0):
            return

        waited = max(wall - thread, 0.0)
        others = min(waited, max(clocks.process() - began.process - thread, 0.0))
        self.seconds += waited - others
        # On the event loop's thread, a wait while others compute is a wait for Python's lock. A
        # worker thread may instead have waited for a server.
        if in_thread and (began.waits < 0 or waited > waits * SWITCH_S):
            self._unsure_s += others
