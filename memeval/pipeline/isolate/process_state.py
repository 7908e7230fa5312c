"""Process-wide state that systems must not change: changes by a call are noted and undone."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PREFIXES = (b"MEMEVAL_", b"MLFLOW_")
"""Prefixes of variables that determine where results are stored; libraries may change others."""


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - called after each call of a system, and several times as quick
    except OSError:  # it was deleted
        return ""


def _variables() -> dict[bytes, bytes]:
    # As bytes, and only these variables, for speed: it runs after each call of a system.
    return {name: os.environb[name] for name in os.environb if name.startswith(_PREFIXES)}


def _set_variables(variables: dict[bytes, bytes]) -> None:
    # All are removed first: a system may have added some.
    for name in _variables():
        os.environb.pop(name, None)

    os.environb.update(variables)


def _set_handlers(handlers: list[Any]) -> None:
    for number, handler in zip(_SIGNALS, handlers, strict=True):
        signal.signal(number, handler)


def _set_streams(streams: tuple[Any, Any]) -> None:
    sys.stdout, sys.stderr = streams


_PARTS: tuple[tuple[str, Callable[[], Any], Callable[[Any], object]], ...] = (
    ("the working directory", _folder, os.chdir),
    ("memeval's environment variables", _variables, _set_variables),
    ("signal handlers", lambda: list(map(signal.getsignal, _SIGNALS)), _set_handlers),
    ("standard streams", lambda: (sys.stdout, sys.stderr), _set_streams),
)
"""The name of each part, the function that reads it, and the one that restores it."""


class ProcessState:
    """The process as it was before any system was built, and the changes that systems made."""

    def __init__(self) -> None:
        self._before = [read() for _, read, _ in _PARTS]
        self._changed: set[str] = set()

    def restore(self) -> None:
        """Notes which parts have changed, and restores them as far as possible."""
        for (name, read, put_back), before in zip(_PARTS, self._before, strict=True):
            if read() == before:
                continue

            self._changed.add(name)
            # A folder may be gone; handlers can be set only on the main thread.
            with suppress(OSError, ValueError, TypeError):
                put_back(before)

    def notes(self) -> list[str]:
        """Notes for the reader on changes to the process."""
        if not self._changed:
            return []

        changed = ", ".join(sorted(self._changed))
        return [f"A call of the system changed {changed}: this was undone."]
