"""Work in its own thread and event loop: the caller may have a running loop, as in
Jupyter.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from memeval.runs.environment import set_environment

T = TypeVar("T")

_COMPOSING = threading.Lock()


@contextmanager
def composing() -> Iterator[None]:
    """Hydra composes one config at a time; composed runs run side by side."""
    set_environment()
    with _COMPOSING:
        yield


def in_thread(work: Callable[[], T]) -> Future[T]:
    """Starts `work` in a new thread.

    The thread is a daemon, so that Ctrl-C in the caller ends the process.
    """
    future: Future[T] = Future()

    def target() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001
            # Raised again when the result is requested.
            future.set_exception(error)

    # From here on the future refuses `cancel`: a thread can't be stopped from outside.
    future.set_running_or_notify_cancel()
    threading.Thread(target=target, name="memeval-run", daemon=True).start()

    return future
