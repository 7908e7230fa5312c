"""Calls a system's methods so that a hang, `sys.exit` or a cancellation in one stops no more than
it should. Any exception of a method becomes one error with its source location. A plain method runs
in a daemon thread, which does not keep the process from ending; with `system.timeout_s`, each call
has a time limit.
"""

import asyncio
import contextvars
import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from memeval.errors import MemevalError, SystemFaultError
from memeval.llm.metering import current_ledger
from memeval.pipeline.isolate.call import TOOL, Steps, SystemCall
from memeval.pipeline.isolate.process_state import ProcessState
from memeval.systems.base import MemorySystem
from memeval.systems.tools import Tool
from memeval.text.shown import one_line

THREADS = min(32, (os.cpu_count() or 1) + 4)
"""Plain calls of systems that run at the same time."""
FILLING = ("reset", "ingest", "compress", "consolidate")
"""Methods that build a memory."""

_SLOTS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
"""The slots for plain calls: the API runs one loop per cell, and a semaphore belongs to a loop."""
# By id: a `SystemCall` changes while it is under way, and so has no hash.
_under_way: dict[int, SystemCall] = {}
abandoned_calls: list[SystemCall] = []
"""Calls that were abandoned in this process, and may still run in their own threads."""


def calls_under_way() -> list[str]:
    """The calls of systems that are under way, the oldest first."""
    # Ctrl-C calls this from another thread while calls begin and end: `copy` is one step.
    calls = _under_way.copy().values()
    return [call.describe() for call in sorted(calls, key=lambda call: call.since)]


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
        """`state` is the process before any system; `stop_parts` ends the waits of its threads."""
        self.system = system
        self.case_id, self.timeout_s, self._stop_parts = case_id, timeout_s, stop_parts
        self.user = ""
        """User that asks, if several users share its store."""
        self.has_hung_call = False
        """Whether a call other than a question was abandoned: the system is then not closed."""
        self._state = state or ProcessState()

    async def call(self, name: str, *arguments: Any) -> Any:
        """Calls a method. Raises `SystemFaultError`, or a `MemevalError` that the system raised."""
        call = self._call(name)
        with _track(call, self._state):
            method = call.attribute(name)
            return await self._value_of(call, method, lambda: method(*arguments))

    async def use(self, tool: Tool, arguments: Mapping[str, Any]) -> Any:
        """Calls a tool of the system and returns its result. Raises the same errors as `call`."""
        call = self._call(f"{TOOL}{tool.name}")
        with _track(call, self._state):
            return await self._value_of(call, tool.call, lambda: tool.call(**arguments))

    async def run(self, calls: Iterable[tuple[str, tuple[Any, ...]]]) -> None:
        """Calls methods in turn, by name and arguments. Raises the same errors as `call`."""
        in_thread = self._call("ingest").attribute("in_thread")
        methods = [self._call(name).attribute(name) for name in FILLING]
        if in_thread and any(map(inspect.iscoroutinefunction, methods)):
            # Each method is called where it must run, but never two at the same time.
            for name, arguments in calls:
                await self.call(name, *arguments)

            return

        call = self._call("reset")
        steps = self._steps(call, calls)

        def run_steps() -> None:
            for step in steps:
                _check_ran(call, step())

        with _track(call, self._state):
            if in_thread:
                await self._in_thread(call, run_steps)
            else:
                await self._on_loop(call, _run_steps(call, steps))

    def _steps(
        self, call: SystemCall, calls: Iterable[tuple[str, tuple[Any, ...]]]
    ) -> Iterator[Callable[[], Any]]:
        """The calls to make, until the run is stopped."""
        for name, arguments in calls:
            if call.is_stopped:
                return

            # The time limit applies to each call, not to all of them together.
            call.method, call.since = name, time.monotonic()
            yield partial(getattr(self.system, name), *arguments)

    async def close(self) -> str | None:
        """Closes the system; returns any error, which does not affect the measurements."""
        if self.has_hung_call:
            # A thread of the system may still be inside it: `close` would race with that.
            return None

        try:
            await self.call("close")
        except MemevalError as error:
            return one_line(error, 400)

        return None

    def misuse(self, method: str, problem: str) -> SystemFaultError:
        """The error of a method that broke its contract without raising anything."""
        return self._call(method).misuse(problem)

    def _call(self, name: str) -> SystemCall:
        return SystemCall(self.case_id, self.system, name, self.timeout_s)

    async def _value_of(
        self, call: SystemCall, function: Callable[..., Any], run: Callable[[], Any]
    ) -> Any:
        """The value of `run`, which calls `function`, plain or `async`."""
        if inspect.iscoroutinefunction(function):
            # This only creates the coroutine: its code runs, and is timed, in `_on_loop`.
            value = call.run(run)
        elif call.attribute("in_thread"):
            value = await self._in_thread(call, run)
        else:
            with current_ledger().own_work.running():
                value = call.run(run)

        # A plain function may return an awaitable, for instance that of a wrapped client.
        if isinstance(value, Awaitable):
            value = await self._on_loop(call, value)

        _check_ran(call, value)
        return value

    async def _on_loop(self, call: SystemCall, awaitable: Awaitable[Any]) -> Any:
        """Runs a coroutine in a task; gives up at its time limit, even if it ignores the cancel."""

        # Returned, not raised: asyncio would print the error of an abandoned task.
        async def run() -> tuple[Any, MemevalError | None]:
            try:
                return await Steps(awaitable, call), None
            except BaseException as error:  # noqa: BLE001 - raised where the call is waited for
                return None, call.fault(error)

        task = asyncio.ensure_future(run())
        if not await _ends_in_time(call, task, stop=task.cancel):
            task.cancel()
            raise self._give_up(call)

        # memeval did not cancel the task: a system did.
        if task.cancelled():
            raise call.misuse("it cancelled the task that it ran in")

        value, problem = task.result()
        if problem is not None:
            raise problem

        return value

    async def _in_thread(self, call: SystemCall, work: Callable[[], Any]) -> Any:
        """Runs `work` in a daemon thread; a cancellation waits for the call under way."""
        outcome: Future[Any] = Future()
        # The ledger that counts the calls is a context variable: the thread needs it, too.
        context = contextvars.copy_context()
        own_work = current_ledger().own_work

        def run() -> None:
            try:
                with own_work.running(in_thread=True):
                    outcome.set_result(context.run(work))
            except BaseException as error:  # noqa: BLE001 - raised where the call is waited for
                outcome.set_exception(call.fault(error))

        # The wait for a slot is not part of the system's time.
        async with _SLOTS.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(THREADS)):
            # Some changes that a system may have made meanwhile would prevent new threads.
            self._state.restore()
            name = f"memeval {type(self.system).__name__}"
            threading.Thread(target=run, name=name, daemon=True).start()

            ended = asyncio.wrap_future(outcome)
            # Retrieved even if the call is abandoned: otherwise asyncio would print the error.
            ended.add_done_callback(asyncio.Future.exception)
            # After a stop, the thread may wait for a reply that never comes.
            if not await _ends_in_time(call, ended, stop=self._stop_parts):
                abandoned_calls.append(call)
                raise self._give_up(call)

        return ended.result()

    def _give_up(self, call: SystemCall) -> SystemFaultError:
        call.is_stopped = True
        # A question that hangs leaves the memory as it was: the other questions are still asked.
        is_question = call.method == "answer" or call.method.startswith(TOOL)
        self.has_hung_call = self.has_hung_call or not is_question
        return call.overdue()


def build_watched(
    build: Callable[[], MemorySystem],
    system_class: type[MemorySystem],
    *,
    case_id: str,
    timeout_s: float | None,
    state: ProcessState,
    stop_parts: Callable[[], None],
) -> Watched:
    """The system that `build` creates on this thread. Raises `SystemFaultError`."""
    call = SystemCall(case_id, system_class, "__init__", timeout_s)
    with _track(call, state):
        system = call.run(build)

    return Watched(system, case_id, timeout_s, state, stop_parts)


@contextmanager
def _track(call: SystemCall, state: ProcessState) -> Iterator[None]:
    """Tracks a call; changes that it made to the process are undone, also after an error."""
    _under_way[id(call)] = call
    try:
        yield
    finally:
        del _under_way[id(call)]
        state.restore()


async def _run_steps(call: SystemCall, steps: Iterable[Callable[[], Any]]) -> None:
    """Makes calls on the event loop, which is free between them."""
    for step in steps:
        value = step()
        if isinstance(value, Awaitable):
            value = await value

        _check_ran(call, value)
        await asyncio.sleep(0)


async def _ends_in_time(
    call: SystemCall, ended: asyncio.Future[Any], stop: Callable[[], object]
) -> bool:
    """Whether a call ends within its time limit; `stop` is called if the run is stopped."""
    call.since = time.monotonic()
    remaining_s = None
    try:
        # In a loop: within `Watched.run`, the next call began later, and has its full time limit.
        while not ended.done():
            if call.timeout_s is not None:
                remaining_s = call.since + call.timeout_s - time.monotonic()
                if remaining_s <= 0:
                    return False

            # `asyncio.wait_for` would wait for a task that ignores its cancellation.
            await asyncio.wait({ended}, timeout=remaining_s)
    except asyncio.CancelledError:
        call.is_stopped = True
        stop()
        await asyncio.wait({ended})
        raise

    return True


def _check_ran(call: SystemCall, value: Any) -> None:
    """Raises `SystemFaultError` for a generator or a coroutine: calling it ran no code."""
    if inspect.iscoroutine(value):
        value.close()  # otherwise Python warns that it was never awaited
        raise call.misuse(
            "it returned a coroutine, but is not an `async` method, so its code never ran"
        )

    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        raise call.misuse("it returned a generator, so its code never ran")
