"""The event loop of a run.

memeval drives it for two reasons: Ctrl-C never arrives inside a system's code, which could swallow
it; and the end does not wait for a system's leftovers (a thread, a task that can't be cancelled).
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from memeval.errors import WorldError
from memeval.llm.in_flight import Finish, in_flight
from memeval.llm.own_work import noting_collections
from memeval.process.allocator import map_large_blocks
from memeval.process.collector import rare_collections
from memeval.runs.interrupt import is_listening, say, stopping
from memeval.text.shown import counted, one_line

T = TypeVar("T")

FINISH_S = 10.0
"""Seconds for which the first Ctrl-C waits for model calls in progress."""
REPORT_S = 0.1
"""Time limit for other processes to report their calls under way."""
WIND_UP_S = 1.0
"""Time limit for cancelled tasks to end."""
CANCELLED = "the system cancelled the run, because it cancelled tasks that it did not start"


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Runs `main` on a new event loop, and returns its result.

    Raises `KeyboardInterrupt` after a Ctrl-C.

    Unlike `asyncio.run`, it continues if a system stops the loop, and does not wait for threads and
    tasks that can't be ended.
    """
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_report_in_a_line)
    task = loop.create_task(main)
    # Kept here: the loop itself holds only a weak reference to a task.
    finishing: list[asyncio.Task[None]] = []
    interrupted = False

    def interrupt(finish: Finish) -> None:
        nonlocal interrupted
        interrupted = True
        # Called directly, it would not wake a loop that sleeps until its next event.
        loop.call_soon_threadsafe(start_finishing, finish)

    def start_finishing(finish: Finish) -> None:
        finishing.append(loop.create_task(_finish_calls(task, finish)))

    by_keys = partial(interrupt, _finish_all)
    by_switch = partial(interrupt, partial(in_flight.finish_part, loop))
    map_large_blocks()
    try:
        asyncio.set_event_loop(loop)
        with stopping(by_keys, by_switch):
            with rare_collections(), noting_collections():
                _run_until_done(loop, task)

            # A run that finished at the same moment counts as finished.
            if interrupted and (task.cancelled() or task.exception() is not None):
                raise KeyboardInterrupt

        if task.cancelled():
            raise WorldError(CANCELLED)

        return task.result()
    finally:
        _close(loop)
        in_flight.reopen()
        asyncio.set_event_loop(None)


async def _finish_all(most_s: float) -> None:
    """Waits for the model calls of all threads and processes, and reports their number."""
    finishing = asyncio.ensure_future(in_flight.finish(most_s))
    if in_flight.elsewhere:
        # First the other processes report their numbers of calls under way.
        await asyncio.wait({finishing}, timeout=REPORT_S)

    count = in_flight.under_way_anywhere
    if count:
        say(
            f"\nmemeval: waiting up to {FINISH_S:.0f} s for {counted(count, 'model call')} in "
            "progress; Ctrl-C again to stop now"
        )

    await finishing


async def _finish_calls(task: asyncio.Task[Any], finish: Finish) -> None:
    """Cancels the task once the model calls in progress have ended."""
    try:
        await finish(FINISH_S)
    finally:
        task.cancel()


def _run_until_done(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    """Runs the loop until the task is done.

    If other code stops the loop, it is started again.
    """
    while not task.done():
        try:
            loop.run_until_complete(asyncio.wait({task}))
        except RuntimeError:
            if loop.is_closed():
                raise
        except (SystemExit, asyncio.CancelledError):
            # asyncio passes on SystemExit from any task, including those that a system started; and
            # a system may cancel every task, including this waiting one.
            continue
        except KeyboardInterrupt:
            if not is_listening():
                raise


def _report_in_a_line(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG001 - as asyncio calls it
    """Reports an unhandled exception of a task on one line; asyncio would print a traceback."""
    error = context.get("exception")
    cause = f": {type(error).__name__}: {one_line(error)}" if error is not None else ""
    say(f"memeval: {one_line(context.get('message', ''))}{cause}")


def _close(loop: asyncio.AbstractEventLoop) -> None:
    loop.set_exception_handler(lambda *_: None)  # tasks that are given up need no report
    remaining = asyncio.all_tasks(loop)
    for task in remaining:
        task.cancel()

    with suppress(RuntimeError, SystemExit):
        if remaining:
            loop.run_until_complete(asyncio.wait(remaining, timeout=WIND_UP_S))

        loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), WIND_UP_S))

    with suppress(TimeoutError, RuntimeError):
        loop.close()
