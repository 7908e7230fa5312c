"""One call of a system's method: its outcome, and the time limit that ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from memeval.errors import SystemFaultError
from memeval.llm.metering import current_ledger
from memeval.pipeline.places import (
    fault,
    place_of,
)
from memeval.shown import one_line

AGAIN_S = 0.5
"""Seconds between two interruptions of a call that blocks the event loop past its time limit: it
may swallow one.
"""


@dataclass
class Call:
    """One call under way."""

    case_id: str
    system: str
    method: str
    since: float
    source: str
    owner: Any
    """The system, or its class before there is a system."""

    def describe(self) -> str:
        return f"case {one_line(self.case_id, 60)}: {self.system}.{self.method}"


class _Overdue(BaseException):
    """Raised inside a call that blocks the event loop past its time limit.

    It is a BaseException, so that few handlers swallow it.
    """


@dataclass
class Outcome:
    """The value or the error of a call.

    An error is kept as a value, so that no `SystemExit` or cancellation of a system passes through
    the event loop.
    """

    value: Any = None
    error: BaseException | None = None

    def result(self, call: Call) -> Any:
        if self.error is not None:
            raise fault(self.error, call.method, call.source, call.owner) from self.error

        return self.value


def overdue(place: str, timeout_s: float | None) -> str:
    """The message for a call that took longer than its time limit."""
    return f"{place}: no end after {timeout_s:g} s (system.timeout_s); it was given up"


def run_step(step: Callable[[], Any], timeout_s: float | None, call: Call) -> Outcome:
    """Runs plain code on the thread of the event loop, and interrupts it at its time limit."""
    try:
        with _alarm(timeout_s):
            return Outcome(step())
    except _Overdue as error:
        return Outcome(
            error=SystemFaultError(
                overdue(place_of(error.__traceback__, call.method, call.source), timeout_s)
            )
        )
    except BaseException as error:  # noqa: BLE001
        # Kept as a value: see `Outcome`.
        return Outcome(error=error)


class Steps:
    """Runs a coroutine step by step: each is timed as the system's own work, and has a time limit.

    Between two steps the event loop does other work; within a step it is blocked.
    """

    def __init__(
        self, inner: Awaitable[Any], timeout_s: float | None = None, call: Call | None = None
    ) -> None:
        """`call` says whose step a message is about; without a time limit there is none."""
        # Only a coroutine can be driven step by step: a future does its work elsewhere.
        self._inner = inner if isinstance(inner, Coroutine) else _wait_for(inner)
        self._timeout_s, self._call = timeout_s, call

    def __await__(self) -> Generator[Any, Any, Any]:
        inner, own = self._inner, current_ledger().own
        step: Callable[[], Any] = lambda: inner.send(None)  # noqa: E731 - the first of several
        while True:
            try:
                with _alarm(self._timeout_s), own.running():
                    awaited = step()
            except StopIteration as end:
                return end.value
            except _Overdue as error:
                assert self._call is not None, "a time limit comes with its call"
                place = place_of(error.__traceback__, self._call.method, self._call.source)
                raise SystemFaultError(overdue(place, self._timeout_s)) from error

            # A bare `yield` only lets others run: nothing is waited for.
            left = None if awaited is None else own.leave()
            try:
                sent = yield awaited
            except BaseException as error:  # noqa: BLE001
                # Thrown on into the coroutine, as `await` does.
                step = _thrower(inner, error)
            else:
                step = _sender(inner, sent)
            finally:
                own.come_back(left)


async def _wait_for(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _thrower(inner: Coroutine[Any, Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: inner.throw(error)


def _sender(inner: Coroutine[Any, Any, Any], value: Any) -> Callable[[], Any]:
    return lambda: inner.send(value)


@contextmanager
def _alarm(timeout_s: float | None) -> Iterator[None]:
    """Raises `_Overdue` in the code below once its time is over.

    Only the main thread can be interrupted in this way; elsewhere there is no time limit.
    """
    if (
        timeout_s is None
        or threading.current_thread() is not threading.main_thread()
        or not hasattr(signal, "setitimer")
    ):
        yield
        return

    def ring(number: int, frame: object) -> None:  # noqa: ARG001 - as `signal` calls it
        raise _Overdue

    # The timer rings again every `AGAIN_S`: the code below may swallow the first interruption.
    # The handler comes first: an alarm without one ends the process.
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, timeout_s, AGAIN_S)
    try:
        yield
    finally:
        # In this order, too: a last alarm must not reach the handler of before.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
