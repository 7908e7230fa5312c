"""Runs work in its own thread and event loop: the caller may have a running loop, as in Jupyter."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar

from memeval.config.paths import refusing_paths
from memeval.process.environment import set_environment
from memeval.runs.interrupt import StopSwitch

T = TypeVar("T")

_COMPOSING = threading.Lock()


@contextmanager
def composing() -> Iterator[None]:
    """Lets one thread compose at a time, as Hydra needs; composed runs still run concurrently."""
    set_environment()
    with _COMPOSING:
        yield


def in_thread(work: Callable[[], T]) -> T:
    """Returns the result of `work`, done in a new thread.

    Ctrl-C in the caller ends the work as a command's first Ctrl-C does. Otherwise the thread would
    go on in a notebook, whose process survives.
    """
    switch = StopSwitch()
    future = _start(work, switch)
    try:
        return future.result()
    except KeyboardInterrupt:
        switch.stop()
        wait([future])
        raise


def _start(work: Callable[[], T], switch: StopSwitch) -> Future[T]:
    """Starts `work` in a new thread: a daemon, so that a second Ctrl-C ends the process."""
    future: Future[T] = Future()

    def target() -> None:
        try:
            with refusing_paths(), switch.for_this_thread():
                result = work()

            future.set_result(result)
        except BaseException as error:  # noqa: BLE001
            # Raised again when the result is requested.
            future.set_exception(error)

    # After this, the future refuses `cancel`: a thread can't be stopped from outside.
    future.set_running_or_notify_cancel()
    threading.Thread(target=target, name="memeval-run", daemon=True).start()

    return future


async def await_thread(work: Callable[[], T]) -> T:
    """Returns the result of `work`, done in a new thread.

    If the caller is cancelled, the work ends as after a first Ctrl-C: model calls in progress
    finish, and finished work is kept.
    """
    switch = StopSwitch()
    future = asyncio.wrap_future(_start(work, switch))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        switch.stop()
        await asyncio.wait({future})
        future.exception()  # asyncio would log an error that nobody reads
        raise
