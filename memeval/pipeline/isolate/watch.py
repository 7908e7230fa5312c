"""Calls a system's methods so that nothing it does stops more than it should: not a hang, not
`sys.exit`, not a cancellation.

Whatever a method raises comes out as one error with its source location. A plain method runs in a
daemon thread, which the process need not wait for when it ends; with `system.timeout_s`, each call
has an end.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from memeval.errors import MemevalError, SystemFaultError
from memeval.llm.metering import current_ledger
from memeval.pipeline.isolate.call import Call, Steps
from memeval.pipeline.isolate.locations import (
    Frames,
    frames_of_coroutine,
    frames_of_thread,
    locate_method,
)
from memeval.pipeline.isolate.process_state import ProcessState
from memeval.systems.base import MemorySystem
from memeval.text.shown import one_line

THREADS = min(32, (os.cpu_count() or 1) + 4)
"""Plain calls of systems that run at once."""
LOOK_S = 0.05
"""Between two looks at a thread whose calls are timed one by one."""

_SLOTS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
# By id: a `Call` changes while it is under way, and so has no hash.
_under_way: dict[int, Call] = {}
_left_behind: list[str] = []
"""Calls that were given up, and still run in a thread of their own."""


def under_way() -> list[str]:
    """The calls of systems that are being waited for, the oldest first."""
    # Ctrl-C asks from a thread of its own, while calls begin and end: `copy` is one step.
    calls = _under_way.copy().values()
    return [call.describe() for call in sorted(calls, key=lambda call: call.since)]


def left_behind() -> list[str]:
    """The calls that were given up in this process and may still run."""
    return list(_left_behind)


class Watched:
    """A system of one case and the limits under which it is called."""

    def __init__(
        self,
        system: MemorySystem,
        case_id: str = "",
        timeout_s: float | None = None,
        state: ProcessState | None = None,
        stop_parts: Callable[[], None] = lambda: None,
    ) -> None:
        """`state` is what the process was like before any system was built; `stop_parts` ends what
        a thread of it waits for.
        """
        self.system = system
        self.case_id, self.timeout_s, self._stop_parts = case_id, timeout_s, stop_parts
        self.hung = False
        """Whether a call was given up while it built or loaded the memory: nothing more is asked of
        the system then.
        """
        self._state = state or ProcessState()

    async def call(self, name: str, *arguments: Any) -> Any:
        """Calls a method and returns its result.

        Raises `SystemFaultError`, or the `MemevalError` that the system let through.
        """
        call = self._call(name)
        with _track(call, self._state):
            method = self.attribute(name, name)
            if inspect.iscoroutinefunction(method):
                # This only makes the coroutine: its code runs, and is timed, in `_on_loop`.
                value = call.run(lambda: method(*arguments))
            elif self.attribute("in_thread", name):
                value = await self._in_thread(call, lambda: method(*arguments))
            else:
                with current_ledger().own.running():
                    value = call.run(lambda: method(*arguments))

            # A plain method may return an awaitable, for instance that of a wrapped client.
            if isinstance(value, Awaitable):
                value = await self._on_loop(call, value)

        _check_ran(value, self.system, name)
        return value

    async def run(self, calls: Iterable[tuple[str, tuple[Any, ...]]]) -> None:
        """Calls plain methods, each by its name and with its arguments, one after the other in one
        worker thread.
        """
        call = self._call("reset")
        stopped = threading.Event()

        def play() -> None:
            for name, arguments in calls:
                if stopped.is_set():
                    return

                # The time limit holds for each call, and not for all of them together.
                call.method, call.since = name, time.monotonic()
                _check_ran(getattr(self.system, name)(*arguments), self.system, name)

        with _track(call, self._state):
            await self._in_thread(call, play, stopped)

    def attribute(self, name: str, method: str) -> Any:
        """An attribute of the system, which may run code of the system.

        Raises `SystemFaultError` if that fails.
        """
        return self._call(method).run(lambda: getattr(self.system, name))

    async def close(self) -> str | None:
        """Closes the system; what went wrong with that, which spoils nothing that was measured."""
        if self.hung:
            # A thread of the system may still be inside it: `close` would race with that.
            return None

        try:
            await self.call("close")
        except MemevalError as error:
            return one_line(error, 400)

        return None

    def _call(self, name: str) -> Call:
        return Call(self.case_id, self.system, name, self.timeout_s)

    async def _on_loop(self, call: Call, value: Awaitable[Any]) -> Any:
        """Waits for a coroutine in a separate task.

        At the time limit it gives the coroutine up, even if that ignores its cancellation.
        """

        async def play() -> tuple[Any, MemevalError | None]:
            # A task that was given up may be closed late: an error raised then would be printed.
            try:
                return await Steps(value, call), None
            except BaseException as error:  # noqa: BLE001 - raised where the call is waited for
                return None, call.fault(error)

        call.since = time.monotonic()
        task = asyncio.ensure_future(play())
        try:
            is_over = await _wait(call, task)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise

        if not is_over:
            frames = frames_of_coroutine(value)
            task.cancel()
            raise self._give_up(call, frames)

        # We cancelled nothing here: a system got hold of the task and cancelled it.
        if task.cancelled():
            raise SystemFaultError(
                f"{locate_method(self.system, call.method)}: it cancelled the task that it ran in"
            )

        result, problem = task.result()
        if problem is not None:
            raise problem

        return result

    async def _in_thread(
        self, call: Call, work: Callable[[], Any], stopped: threading.Event | None = None
    ) -> Any:
        """Runs `work` in a daemon thread.

        A cancellation from outside waits for the call under way, which can't be undone by half;
        `stopped` then keeps the work from making another one.
        """
        outcome: Future[Any] = Future()
        outcome.set_running_or_notify_cancel()
        # The ledger that counts the calls is a context variable: the thread needs it, too.
        context = contextvars.copy_context()
        own = current_ledger().own

        def play() -> None:
            try:
                with own.running(in_thread=True):
                    value = context.run(work)
            except BaseException as error:  # noqa: BLE001 - raised where the call is waited for
                outcome.set_exception(call.fault(error))
            else:
                outcome.set_result(value)

        async with _slots(asyncio.get_running_loop()):
            # The wait for a slot is not time that the system took.
            call.since = time.monotonic()
            # Under some of what a system may have changed meanwhile, no thread can be made.
            self._state.restore()
            name = f"memeval {type(self.system).__name__}"
            thread = threading.Thread(target=play, name=name, daemon=True)
            thread.start()

            ended = asyncio.wrap_future(outcome)
            ended.add_done_callback(_read_error)
            try:
                is_over = await _wait(call, ended)
            except asyncio.CancelledError:
                if stopped is not None:
                    stopped.set()

                # The thread may wait for a reply that nobody fetches any more.
                self._stop_parts()
                await asyncio.wait({ended})
                raise

            if not is_over:
                # Read before anything else is done: the frame moves on while the thread runs.
                frames = frames_of_thread(sys._current_frames().get(thread.ident or 0))
                _left_behind.append(call.describe())
                if stopped is not None:
                    stopped.set()

                raise self._give_up(call, frames)

        return ended.result()

    def _give_up(self, call: Call, frames: Frames) -> SystemFaultError:
        # A question that hung leaves the memory as it was: the other questions are still asked.
        self.hung = self.hung or call.method != "answer"
        return call.overdue(frames)


def build_watched(
    build: Callable[[], MemorySystem],
    system_class: type[MemorySystem],
    *,
    case_id: str,
    timeout_s: float | None,
    state: ProcessState,
    stop_parts: Callable[[], None],
) -> Watched:
    """The system that `build` makes, on the calling thread.

    Raises `SystemFaultError` for what its constructor does.
    """
    call = Call(case_id, system_class, "__init__", timeout_s)
    with _track(call, state):
        system = call.run(build)

    return Watched(system, case_id, timeout_s, state, stop_parts)


async def _wait(call: Call, ended: asyncio.Future[Any]) -> bool:
    """Whether a call ended within its time limit."""
    # `asyncio.wait_for` would wait for a task that ignores its cancellation; `wait` does not.
    if call.timeout_s is None:
        await asyncio.wait({ended})

    # In a loop: within `Watched.run`, the next call began later, and has its whole time left.
    while not ended.done():
        left = call.since + (call.timeout_s or 0) - time.monotonic()
        if left <= 0:
            return False

        await asyncio.wait({ended}, timeout=max(left, LOOK_S))

    return True


def _read_error(ended: asyncio.Future[Any]) -> None:
    """Reads the error of a call that may have been given up: asyncio reports those nobody read."""
    if not ended.cancelled():
        ended.exception()


def _check_ran(value: Any, system: MemorySystem, name: str) -> None:
    """Raises `SystemFaultError` for a method that was written as a generator: calling it ran
    nothing.
    """
    what = "a generator" if inspect.isgenerator(value) or inspect.isasyncgen(value) else ""
    if inspect.iscoroutine(value):
        what = "a coroutine, but is not an `async` method"
        value.close()  # else Python warns that it was never awaited

    if what:
        raise SystemFaultError(
            f"{locate_method(system, name)}: it returned {what}, so its code never ran"
        )


@contextmanager
def _track(call: Call, state: ProcessState) -> Iterator[None]:
    """A call is under way; what it changed of the process is put back, also after an error."""
    _under_way[id(call)] = call
    try:
        yield
    finally:
        del _under_way[id(call)]
        state.restore()


def _slots(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    """The slots for plain calls of one event loop."""
    # A semaphore belongs to the loop on which it is waited for; the API runs one loop per cell.
    if loop not in _SLOTS:
        _SLOTS[loop] = asyncio.Semaphore(THREADS)

    return _SLOTS[loop]
