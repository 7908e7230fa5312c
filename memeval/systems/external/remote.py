"""Failures of a server that stores a system's memory, and deletion of its data there."""

import logging
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from memeval.errors import MemevalError, MemoryServiceError, UserError

MAX_CONCURRENCY = 8
"""Maximum concurrent requests to a server through its library, over all cases of a process."""

_log = logging.getLogger(__name__)
_answered: set[str] = set()


def note_answer(address: str) -> None:
    """Notes that the server at a URL has answered this process."""
    _answered.add(address)


@cache
def pool(library: str, address: str) -> ThreadPoolExecutor:
    """The threads for calls to a server through a library whose client is synchronous."""
    return ThreadPoolExecutor(MAX_CONCURRENCY, thread_name_prefix=f"{library} {address}")


def fault(address: str, message: str, *hints: str) -> MemevalError:
    """The error for a failure of a server."""
    # A server that never answered is the user's mistake, and ends the run before anything is paid
    # for. A later failure is an outage, and becomes the status of a case.
    if address not in _answered:
        return UserError(message, *hints)

    return MemoryServiceError(message)


class Leftover:
    """Data at a server that must be deleted.

    It is deleted at `discard`, else when its owner is gone, else when the process ends.
    """

    def __init__(
        self, owner: object, label: str, delete: Callable[[Any, str], None], client: Any, name: str
    ) -> None:
        """`delete` gets `client` and `name`; neither may keep a reference to `owner`."""
        # A finalizer runs once, whichever of the three comes first, and also when the process
        # ends.
        self._finalizer = weakref.finalize(owner, _delete, label, delete, client, name)

    def discard(self) -> None:
        """Deletes the data in another thread, which the process waits for when it ends."""
        # Not a daemon: Python waits for it, so the deletion is not cut off.
        threading.Thread(target=self._finalizer, name="memeval-discard").start()


def _delete(label: str, delete: Callable[[Any, str], None], client: Any, name: str) -> None:
    try:
        delete(client, name)
    except Exception as error:  # noqa: BLE001 - a client may raise any error; the results stay
        _log.warning(
            "%s could not be deleted and is left behind: %s: %s", label, type(error).__name__, error
        )
