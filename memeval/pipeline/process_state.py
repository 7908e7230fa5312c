"""What belongs to the process and not to a system: put back after each call of a system that
changed it.
"""

from __future__ import annotations

import locale
import os
import signal
import sys
import threading
from contextlib import suppress
from functools import cache
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
_OURS = (b"MEMEVAL_", b"MLFLOW_")
"""Variables that say where results lie; others may be a library's, and stay as it sets them."""


class ProcessState:
    """The working directory, our variables, locale, signal handlers, standard streams and recursion
    limit as they were.
    """

    def __init__(self) -> None:
        self._folder = _folder()
        self._variables = _variables()
        self._streams = (sys.stdout, sys.stderr)
        self._locale = locale.setlocale(locale.LC_ALL)
        self._hooks = (sys.excepthook, threading.excepthook)
        self._depth = sys.getrecursionlimit()
        for number in (1, 2):
            _spare(number)  # now, while the descriptor is sound

        self._handlers: dict[int, Any] = {number: signal.getsignal(number) for number in _SIGNALS}

    def restore(self) -> None:
        """Puts back what differs.

        Only the main thread can set signal handlers, so only there can they have changed.
        """
        if self._folder and _folder() != self._folder:
            with suppress(OSError):
                os.chdir(self._folder)

        if _variables() != self._variables:
            # All go first: a system may have added some.
            for name in _variables():
                del os.environb[name]

            os.environb.update(self._variables)

        if sys.getrecursionlimit() != self._depth:
            sys.setrecursionlimit(self._depth)

        # The locale decides how text files are read and numbers are written.
        if locale.setlocale(locale.LC_ALL) != self._locale:
            locale.setlocale(locale.LC_ALL, self._locale)

        sys.excepthook, threading.excepthook = self._hooks
        self._restore_streams()
        if threading.current_thread() is threading.main_thread():
            for number, handler in self._handlers.items():
                # None: the handler was set in C, and can't be set again from Python.
                if handler is not None and signal.getsignal(number) is not handler:
                    signal.signal(number, handler)

    def _restore_streams(self) -> None:
        # Descriptors first: a stream that is opened again below needs its descriptor.
        for number in (1, 2):
            _reopen(number)

        for name, number, stream in (
            ("stdout", 1, self._streams[0]),
            ("stderr", 2, self._streams[1]),
        ):
            if getattr(sys, name) is stream and not getattr(stream, "closed", False):
                continue

            if getattr(stream, "closed", False):  # its descriptor outlives it
                with suppress(OSError):
                    stream = open(number, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115, PLW2901

            setattr(sys, name, stream)

        # A stream that was closed is replaced for good: the new one is the one to restore.
        self._streams = (sys.stdout, sys.stderr)


@cache
def _spare(number: int) -> int | None:
    """A second descriptor of a standard stream, from which the first one is made again."""
    try:
        return os.dup(number)
    except OSError:  # the process was started without one
        return None


def _reopen(number: int) -> None:
    """Opens a standard descriptor again that somebody closed."""
    try:
        os.fstat(number)
    except OSError:
        spare = _spare(number)
        if spare is not None:
            with suppress(OSError):
                os.dup2(spare, number)


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - called after each call of a system, and several times as quick
    except OSError:  # it was deleted
        return ""


def _variables() -> dict[bytes, bytes]:
    # As bytes: this runs several times per question, and decoding each name costs more than all
    # the rest.
    return {name: os.environb[name] for name in os.environb if name.startswith(_OURS)}
