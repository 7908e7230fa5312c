"""What systems that keep their memory at a server share: how its failures are reported, and that
nothing is left behind there.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable

from memeval.errors import MemevalError, ModelError, UserError

_log = logging.getLogger(__name__)
_answered: set[str] = set()


def answered(address: str) -> None:
    """Notes that a server did what it was asked, in this process."""
    _answered.add(address)


def fault(address: str, message: str, *hints: str) -> MemevalError:
    """The error for a server that fails.

    One that never answered is the user's to mend: it ends the run before anything is paid for.
    Later a failure is a fault of the outside, and becomes a status.
    """
    return ModelError(message) if address in _answered else UserError(message, *hints)


class Leftover:
    """Something at a server that must be deleted.

    At `discard`, else when its owner is gone, else when the process ends.
    """

    def __init__(self, owner: object, what: str, delete: Callable[[], None]) -> None:
        """`delete` must not hold on to `owner`."""
        self._finalizer = weakref.finalize(owner, _delete, what, delete)

    def discard(self) -> None:
        """Deletes it in a thread of its own, which the process waits for when it ends."""
        threading.Thread(target=self._finalizer, name="memeval-discard").start()


def _delete(what: str, delete: Callable[[], None]) -> None:
    try:
        delete()
    except Exception as error:  # noqa: BLE001 - a client may raise anything; the results stay
        _log.warning(
            "%s could not be deleted and is left behind: %s: %s", what, type(error).__name__, error
        )
