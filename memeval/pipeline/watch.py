"""Calls a system's methods so that nothing it does stops more than it should: not a hang, not
`sys.exit`, not a cancellation.

Whatever a method raises comes out as one error with its place. A plain method runs in a daemon
thread, which the process need not wait for when it ends; with `system.timeout_s`, each call has an
end.
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
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

from memeval.errors import MemevalError, SystemFaultError
from memeval.llm.metering import current_ledger
from memeval.pipeline.call import Call, Outcome, Steps, overdue, run_step
from memeval.pipeline.places import (
    fault,
    place_in_coroutine,
    place_in_stack,
    place_of_method,
    source_of,
)
from memeval.pipeline.process_state import ProcessState
from memeval.shown import one_line
from memeval.systems.base import MemorySystem

THREADS = min(32, (os.cpu_count() or 1) + 4)
"""Plain calls of systems that run at once."""
LOOK_S = 0.05
"""Between two looks at a thread whose calls are timed one by one."""


_PLACES: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
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
        self.source = source_of(type(system))
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
        with _track(call):
            try:
                value = await self._invoke(call, self.attribute(name, name), arguments)
            finally:
                # Also after an error: the next call, and the rows on disk, need the right folder.
                self._state.restore()

        _check_ran(value, self.system, name, self.source)
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
                _check_ran(getattr(self.system, name)(*arguments), self.system, name, self.source)

        with _track(call):
            try:
                await self._in_thread(call, play, stopped)
            finally:
                self._state.restore()

    def attribute(self, name: str, method: str) -> Any:
        """An attribute of the system, which may run code of the system.

        Raises `SystemFaultError` if that fails.
        """
        try:
            return getattr(self.system, name)
        except BaseException as error:
            raise fault(error, method, self.source, type(self.system)) from error

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
        return Call(
            self.case_id,
            _name_of(type(self.system)),
            name,
            time.monotonic(),
            self.source,
            self.system,
        )

    async def _invoke(
        self, call: Call, method: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> Any:
        if inspect.iscoroutinefunction(method):
            # This only makes the coroutine: its code runs, and is timed, in `_on_loop`.
            value = run_step(lambda: method(*arguments), None, call).result(call)
        elif self.attribute("in_thread", call.method):
            value = await self._in_thread(call, lambda: method(*arguments))
        else:
            with current_ledger().own.running():
                outcome = run_step(lambda: method(*arguments), self.timeout_s, call)

            value = outcome.result(call)

        # A plain method may return an awaitable, for instance that of a wrapped client.
        if isinstance(value, Awaitable):
            return await self._on_loop(call, value)

        return value

    async def _on_loop(self, call: Call, value: Awaitable[Any]) -> Any:
        """Waits for a coroutine in a separate task.

        At the time limit it gives the coroutine up, even if that ignores its cancellation.
        """

        async def play() -> Outcome:
            try:
                return Outcome(await Steps(value, self.timeout_s, call))
            except BaseException as error:  # noqa: BLE001
                # Kept as a value: see `Outcome`.
                return Outcome(error=error)

        task = asyncio.ensure_future(play())
        try:
            # `wait_for` would wait for a task that ignores its cancellation; `wait` does not.
            done, _ = await asyncio.wait({task}, timeout=self.timeout_s)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise

        if not done:
            place = place_in_coroutine(value, call.method, self.source)
            task.cancel()
            raise self._given_up(call, place)

        # We cancelled nothing here: a system got hold of the task and cancelled it.
        if task.cancelled():
            raise SystemFaultError(
                f"{place_of_method(self.system, call.method, self.source)}: it cancelled the task "
                "that it ran in"
            )

        return task.result().result(call)

    async def _in_thread(
        self, call: Call, work: Callable[[], Any], stopped: threading.Event | None = None
    ) -> Any:
        """Runs `work` in a daemon thread.

        A cancellation from outside waits for the call under way, which can't be undone by half;
        `stopped` then keeps the work from making another one.
        """
        loop = asyncio.get_running_loop()
        finished = asyncio.Event()
        outcome = Outcome()
        # The ledger that counts the calls is a context variable: the thread needs it, too.
        context = contextvars.copy_context()

        own = current_ledger().own

        def play() -> None:
            try:
                with own.running(in_thread=True):
                    outcome.value = context.run(work)
            except BaseException as error:  # noqa: BLE001
                # Kept as a value: see `Outcome`.
                outcome.error = error

            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(finished.set)

        async with _places(loop):
            # The wait for a place is not time that the system took.
            call.since = time.monotonic()
            # Under some of what a system may have changed meanwhile, no thread can be made.
            self._state.restore()
            thread = threading.Thread(target=play, name=f"memeval {call.system}", daemon=True)
            thread.start()
            try:
                await self._wait_until_finished(call, finished)
            except asyncio.CancelledError:
                if stopped is not None:
                    stopped.set()

                # The thread may wait for a reply that nobody fetches any more.
                self._stop_parts()
                await finished.wait()
                raise

            if not finished.is_set():
                # Read before anything else is done: the frame moves on while the thread runs.
                frame = sys._current_frames().get(thread.ident or 0)
                _left_behind.append(call.describe())
                if stopped is not None:
                    stopped.set()

                raise self._given_up(call, place_in_stack(frame, call.method, self.source))

        return outcome.result(call)

    async def _wait_until_finished(self, call: Call, finished: asyncio.Event) -> None:
        """Returns when the thread is done, or when its present call is past its time limit."""
        if self.timeout_s is None:
            await finished.wait()
            return

        # In a loop: within `run`, the next call began later, and has its whole time left.
        while not finished.is_set():
            left = call.since + self.timeout_s - time.monotonic()
            if left <= 0:
                return

            with suppress(TimeoutError):
                await asyncio.wait_for(finished.wait(), max(left, LOOK_S))

    def _given_up(self, call: Call, place: str) -> SystemFaultError:
        # A question that hung leaves the memory as it was: the other questions are still asked.
        self.hung = self.hung or call.method != "answer"
        return SystemFaultError(overdue(place, self.timeout_s))


def construct_system(
    build: Callable[[], MemorySystem],
    *,
    system_class: type[Any],
    case_id: str,
    timeout_s: float | None,
) -> MemorySystem:
    """The system that `build` makes, on the calling thread.

    Raises `SystemFaultError` for what its constructor does.
    """
    call = Call(
        case_id,
        _name_of(system_class),
        "__init__",
        time.monotonic(),
        source_of(system_class),
        system_class,
    )
    with _track(call):
        outcome = run_step(build, timeout_s, call)

    system: MemorySystem = outcome.result(call)
    return system


def _check_ran(value: Any, system: MemorySystem, name: str, source: str) -> None:
    """Raises `SystemFaultError` for a method that was written as a generator: calling it ran
    nothing.
    """
    what = "a generator" if inspect.isgenerator(value) or inspect.isasyncgen(value) else ""
    if inspect.iscoroutine(value):
        what = "a coroutine, but is not an `async` method"
        value.close()  # else Python warns that it was never awaited

    if what:
        raise SystemFaultError(
            f"{place_of_method(system, name, source)}: it returned {what}, so its code never ran"
        )


def _name_of(system_class: type[Any]) -> str:
    # A user knows the system by the file that it was written in; ours are known by their class.
    module = system_class.__module__
    is_own = "memeval" in module.split(".")[0]
    return system_class.__name__ if is_own else module.rpartition(".")[2]


@contextmanager
def _track(call: Call) -> Iterator[None]:
    _under_way[id(call)] = call
    try:
        yield
    finally:
        del _under_way[id(call)]


def _places(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    """The places of plain calls of one event loop."""
    # A semaphore belongs to the loop on which it is waited for; the API runs one loop per cell.
    if loop not in _PLACES:
        _PLACES[loop] = asyncio.Semaphore(THREADS)

    return _PLACES[loop]
