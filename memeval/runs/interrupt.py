"""Ctrl-C and SIGTERM, which batch systems and containers send: the first one waits for model calls
in progress, then ends the run cleanly and says what it waits for; the second one ends the process
at once.

A run's event loop is driven here, so that a Ctrl-C never arrives inside the code of a system, which
could swallow it, and so that the end waits for nothing that a system left behind (a thread, a task
that can't be cancelled).
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from memeval.errors import WorldError
from memeval.llm.in_flight import Finish, in_flight
from memeval.process.collector import rare_collections
from memeval.text.shown import one_line

T = TypeVar("T")

KEYS_THREAD = "memeval-keys"
"""Name of the thread that waits for Ctrl-C; it holds no lock."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
TOGETHER_S = 1.0
"""SIGTERM counts once within this time: `timeout` and batch systems send it to the process and to
its group.
"""
FINISH_S = 10.0
"""How long the first Ctrl-C waits for model calls in progress, in seconds."""
REPORT_S = 0.1
"""How long other processes may take to report their calls under way."""
WIND_UP_S = 1.0
"""How long tasks that were cancelled may take to end."""
BLOCKED_S = 0.3
"""How long the main thread may take to act on a Ctrl-C before another thread does it."""
LEAVING_S = 3.0
"""How long threads that others left behind may keep the finished process."""
DISCARD = "memeval-discard"
"""Name of the threads that delete a system's data on a server: they are waited for."""


class _Keys:
    """How often Ctrl-C was pressed or SIGTERM sent, and the work to be cancelled."""

    def __init__(self) -> None:
        self.pressed = 0
        self.handled = 0
        self.first = signal.SIGINT
        """The signal that came first."""
        self._handled_at = self._pressed_at = float("-inf")
        self.cancel: Callable[[], object] | None = None

    def handle(self, number: int, frame: object) -> None:
        """The handler, in the main thread."""
        now, before = time.monotonic(), self._handled_at
        self._handled_at = now
        if number == signal.SIGTERM and now - before < TOGETHER_S:
            return

        self.handled += 1
        if self.handled == 1:
            self.first = signal.Signals(number)
        if self.handled > 1:
            end_now()
        if self.cancel is None:
            raise KeyboardInterrupt  # no event loop runs: Python's default

        report_waiting()
        self.cancel()

    def watch(self, reader: int) -> None:
        """Runs in its own thread: acts if the main thread can't because it runs code that lets no
        handler run.
        """
        # Python runs handlers between two bytecode instructions. A call into C may block them for
        # minutes, but the number of the signal is written to the pipe at once.
        while numbers := os.read(reader, 64):
            for number in numbers:
                now, before = time.monotonic(), self._pressed_at
                if number not in SIGNALS:
                    continue

                self._pressed_at = now
                if number == signal.SIGTERM and now - before < TOGETHER_S:
                    continue

                self.pressed += 1
                pressed = self.pressed
                time.sleep(BLOCKED_S)
                if self.handled >= pressed:
                    continue

                if pressed > 1:
                    end_now()

                report_waiting()

        os.close(reader)


_keys: _Keys | None = None
_of_thread = threading.local()


class Door:
    """Ends the work of one thread from another one, as a first Ctrl-C does."""

    def __init__(self) -> None:
        self.is_closed = False
        self._cancel: Callable[[], object] | None = None
        self._lock = threading.Lock()

    @contextmanager
    def of_this_thread(self) -> Iterator[None]:
        """The loops that this thread runs inside end when the door closes."""
        _of_thread.door = self
        try:
            yield
        finally:
            del _of_thread.door

    def watch(self, cancel: Callable[[], object] | None) -> None:
        """Notes what ends the loop that runs now; it is called at once if the door is closed."""
        with self._lock:
            self._cancel = cancel
            if self.is_closed and cancel is not None:
                cancel()

    def close(self) -> None:
        """Ends the loop once its model calls in progress have ended."""
        with self._lock:
            self.is_closed = True
            if self._cancel is not None:
                self._cancel()


@contextmanager
def listening() -> Iterator[None]:
    """Ctrl-C and SIGTERM are ours for the life of a command, or of a job in a launcher's worker.

    Only the main thread can set handlers; elsewhere nothing changes. An ignored signal stays
    ignored: a shell without job control protects its background jobs from Ctrl-C.
    """
    global _keys  # noqa: PLW0603 - there is one keyboard
    if threading.current_thread() is not threading.main_thread() or _keys is not None:
        yield
        return

    keys = _keys = _Keys()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)  # `set_wakeup_fd` takes no other
    ours = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, keys.handle) for number in ours}
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=keys.watch, args=(reader,), name=KEYS_THREAD, daemon=True).start()

    try:
        yield
    finally:
        # After a first Ctrl-C memeval's handler stays: a second one during shutdown must still end
        # the process.
        if keys.handled == 0:
            for number, handler in before.items():
                signal.signal(number, handler)

            signal.set_wakeup_fd(wakeup)
            os.close(writer)  # which ends the thread
            _keys = None


def exit_status() -> int:
    """The exit status of a command that was interrupted, as a shell has it."""
    return 128 + (signal.SIGINT if _keys is None else _keys.first)


def report_waiting() -> None:
    """Says what memeval waits for, if it is a system's own code."""
    # Looked up, and not imported: if it is not loaded, no system is being called.
    watch = sys.modules.get("memeval.pipeline.isolate.watch")
    waited = watch.under_way() if watch is not None else []
    if waited:
        more = f" and {len(waited) - 1} more" if len(waited) > 1 else ""
        _say(f"\nmemeval: waiting for {waited[0]}{more}; Ctrl-C again to stop now")


def report_calls() -> None:
    """Reports how many model calls the run is waiting for."""
    count = in_flight.under_way_anywhere
    if count:
        calls = "call" if count == 1 else "calls"
        _say(
            f"\nmemeval: waiting up to {FINISH_S:.0f} s for {count} model {calls} in progress; "
            "Ctrl-C again to stop now"
        )


def end_now() -> None:
    """Ends the process. Rows are on disk as soon as they exist; the publisher ends on its own."""
    lost = describe_lost(all_under_way=True)
    _say(f"\nmemeval: stopped at once. Finished work is kept; the same command continues it.{lost}")
    os._exit(exit_status())


def describe_lost(*, all_under_way: bool = False) -> str:
    """The line about replies that a stop lost, those under way included if they are; empty if no
    model was called.
    """
    lost = in_flight.describe_lost(all_under_way=all_under_way)
    return f"\n  {lost}" if lost else ""


def _say(message: str) -> None:
    """Bypasses Python's own streams: the hanging code may have locked them.

    The cursor that progress bars hide comes back.
    """
    shown = "\x1b[?25h" if os.isatty(2) else ""
    with suppress(OSError):
        os.write(2, f"{shown}{message}\n".encode())


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Runs `main` on a new event loop, and returns its result.

    Raises `KeyboardInterrupt` after a Ctrl-C.

    Unlike `asyncio.run`, it goes on if a system stops the loop, and does not wait for threads
    and tasks that can't be ended.
    """
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_report_in_a_line)
    task = loop.create_task(main)
    ending: list[asyncio.Task[None]] = []
    interrupted = False

    def end(finish: Finish) -> None:
        nonlocal interrupted
        interrupted = True
        # Called directly, it would not wake a loop that sleeps until its next event.
        loop.call_soon_threadsafe(begin_to_end, finish)

    def begin_to_end(finish: Finish) -> None:
        ending.append(loop.create_task(_finish_calls(task, finish)))

    door: Door | None = getattr(_of_thread, "door", None)
    try:
        asyncio.set_event_loop(loop)
        if _keys is not None:
            _keys.cancel = partial(end, _finish_all)
        if door is not None:
            door.watch(partial(end, partial(in_flight.finish_part, loop)))

        with rare_collections():
            _drive(loop, task)

        # A run that finished in the same moment counts as finished.
        if interrupted and (task.cancelled() or task.exception() is not None):
            raise KeyboardInterrupt

        if task.cancelled():
            raise WorldError(
                "the system cancelled the run, because it cancelled tasks that it did not start"
            )

        return task.result()
    finally:
        if _keys is not None:
            _keys.cancel = None
        if door is not None:
            door.watch(None)

        _wind_up(loop)
        in_flight.reopen()
        asyncio.set_event_loop(None)


async def _finish_all(most_s: float) -> None:
    """Waits for the model calls of all threads and processes, and says so."""
    finishing = asyncio.ensure_future(in_flight.finish(most_s))
    if in_flight.elsewhere:
        # The other processes report first how many calls they have under way.
        await asyncio.wait({finishing}, timeout=REPORT_S)

    report_calls()
    await finishing


async def _finish_calls(task: asyncio.Task[Any], finish: Finish) -> None:
    """Cancels the task once the model calls in progress have ended."""
    try:
        await finish(FINISH_S)
    finally:
        task.cancel()


def _drive(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    """Runs the loop until the task is done.

    A loop that other code has stopped is run on.
    """
    while not task.done():
        try:
            loop.run_until_complete(asyncio.wait({task}))
        except RuntimeError:
            if loop.is_closed():
                raise
        except (SystemExit, asyncio.CancelledError):
            # asyncio lets an exit through from any task, also from one that a system started; and a
            # system may cancel every task, this waiting one included.
            continue
        except KeyboardInterrupt:
            if _keys is None:
                raise


def _report_in_a_line(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG001 - as asyncio calls it
    """Reports an unhandled exception of a task on one line; asyncio would print a traceback."""
    error = context.get("exception")
    cause = f": {type(error).__name__}: {one_line(error)}" if error is not None else ""
    _say(f"memeval: {one_line(context.get('message', ''))}{cause}")


def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    loop.set_exception_handler(lambda *_: None)  # tasks that are given up need no report
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()

    with suppress(RuntimeError, SystemExit):
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=WIND_UP_S))

        loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), WIND_UP_S))

    with suppress(TimeoutError, RuntimeError):
        loop.close()


def leave(status: int) -> int:
    """The exit status, once nothing that others left behind can keep the process from ending."""
    for thread in threading.enumerate():
        if thread.name.startswith(DISCARD):
            thread.join()

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()

    # At exit the interpreter would search everything that a run has made for cycles.
    gc.freeze()

    watch = sys.modules.get("memeval.pipeline.isolate.watch")
    if watch is not None and watch.left_behind:
        # The interpreter would wait for threads of such a call, which may never end, and only then
        # run the exit functions. Those of libraries are needed too (logging, temporary folders,
        # child processes), and `atexit` has no public function that runs them.
        atexit._run_exitfuncs()
        os._exit(status)

    patience = 0.0 if status == exit_status() else LEAVING_S
    threading.Thread(
        target=_force, args=(status, patience), name="memeval-leaving", daemon=True
    ).start()

    return status


def _force(status: int, patience_s: float) -> None:
    """Ends the process if the interpreter would wait for threads that do not end."""
    time.sleep(max(patience_s, BLOCKED_S))
    os._exit(status)
