"""One call of a system's method, the time limit that ends it, and the source location in a user's
own code at which it went wrong.
"""

from __future__ import annotations

import inspect
import signal
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

from msgspec import Struct, field

from memeval.errors import MemevalError, SystemFaultError
from memeval.llm.metering import current_ledger
from memeval.text.shown import one_line

T = TypeVar("T")
AGAIN_S = 0.5
"""Seconds between two interruptions of an overdue call, which may swallow one."""
TOOL = "tool "
"""Prefix of a tool's name in a message, in place of a method's name."""
_NO_LIMIT = nullcontext()
_OWN = str(Path(__file__).resolve().parents[2])
"""Our own package, whose frames are named only if there are no others."""
_CALLS = dict.fromkeys(("answer", "probe", "tools", "tool search_memory"), "recall")
"""The method of a user that ours calls, by the name of ours."""


class Call(Struct):
    """One call under way."""

    case_id: str
    owner: Any
    """The system, or its class before there is a system."""
    method: str
    timeout_s: float | None = None
    since: float = field(default_factory=time.monotonic)
    is_stopped: bool = False
    """Whether it is to make no further step: it was given up, or the run is being stopped."""

    def describe(self) -> str:
        """The call as a message names it."""
        owner = self.owner if isinstance(self.owner, type) else type(self.owner)
        # A user knows the system by the file that it was written in; ours are known by their class.
        is_ours = "memeval" in owner.__module__.split(".")[0]
        name = owner.__name__ if is_ours else owner.__module__.rpartition(".")[2]
        return f"case {one_line(self.case_id, 60)}: {name}.{self.method}"

    def fault(self, error: BaseException) -> MemevalError:
        """The method's error on one line with its location, unless it was raised on purpose.

        Unlike `StopIteration` and some others, it may pass through an event loop.
        """
        if isinstance(error, MemevalError):
            return error

        name, message = type(error).__name__, show(error, "(its message can't be shown)")
        described = f"{name}: {message}" if message else name
        raised = SystemFaultError(f"{self._location_of(error)}: {described}")
        # Set here, as an error of a thread is raised again without it.
        raised.__cause__ = error
        return raised

    def _location_of(self, error: BaseException) -> str:
        steps = traceback.walk_tb(error.__traceback__)
        frames = [(frame.f_code.co_filename, line) for frame, line in steps]
        foreign = [frame for frame in frames if not _is_ours(frame[0])]
        if not foreign:
            # A call with wrong arguments fails in our frame: no line of the user's code was
            # reached.
            return _location(self.owner, self.method)

        source = _source_of(self.owner)
        theirs = [frame for frame in frames if frame[0] == source]
        # The user's own file says most; of a library's frames the outermost is nearest to it.
        file, line = theirs[-1] if theirs else foreign[0]
        return f"{Path(file).name}:{line} in {self.method}"

    def misuse(self, what: str) -> SystemFaultError:
        """The error of a method that did something odd, without raising anything."""
        method = "tools" if self.method.startswith(TOOL) else self.method
        return SystemFaultError(f"{_location(self.owner, method)}: {what}")

    def overdue(self) -> SystemFaultError:
        """The error of a call that took longer than its time limit."""
        limit = f"did not finish within {self.timeout_s:g} s (system.timeout_s)"
        return self.misuse(f"{limit}; it was given up")

    def run(self, step: Callable[[], T]) -> T:
        """Runs plain code on the loop's thread, up to its time limit. Raises `MemevalError`."""
        try:
            with _time_limit(self):
                return step()
        except BaseException as error:
            raise self.fault(error) from error

    def attribute(self, name: str) -> Any:
        """An attribute of the system, which may run its code. Raises `MemevalError`."""
        return self.run(lambda: getattr(self.owner, name))


class Steps:
    """Runs a coroutine in timed steps with a time limit; between them the loop is free."""

    def __init__(self, inner: Awaitable[Any], call: Call | None = None) -> None:
        """`call` has the time limit; without it there is no limit."""
        # Only a coroutine can be driven step by step: a future does its work elsewhere.
        self._inner = inner if isinstance(inner, Coroutine) else _wait_for(inner)
        self._call = call

    def __await__(self) -> Generator[Any, Any, Any]:
        inner, own = self._inner, current_ledger().own
        step: Callable[[Any], Any] = inner.send
        given: Any = None
        while True:
            try:
                with _time_limit(self._call), own.running():
                    awaited = step(given)
            except StopIteration as end:
                return end.value

            # A bare `yield` only lets others run: nothing is waited for.
            left = None if awaited is None else own.leave()
            try:
                step, given = inner.send, (yield awaited)
            except BaseException as error:  # noqa: BLE001
                # Thrown on into the coroutine, as `await` does.
                step, given = inner.throw, error
            finally:
                own.come_back(left)


async def _wait_for(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


class _Overdue(BaseException):
    """Raised inside an overdue call; a BaseException, so that few handlers swallow it."""


def _time_limit(call: Call | None) -> AbstractContextManager[None]:
    """Interrupts code at its call's time limit, on the main thread. Raises `SystemFaultError`."""
    if (
        call is None
        or call.timeout_s is None
        or threading.current_thread() is not threading.main_thread()
        or not hasattr(signal, "setitimer")
    ):
        return _NO_LIMIT

    return _interrupted(call, call.timeout_s)


@contextmanager
def _interrupted(call: Call, timeout_s: float) -> Iterator[None]:
    def ring(number: int, frame: object) -> None:  # noqa: ARG001 - as `signal` calls it
        raise _Overdue

    # The timer rings again every `AGAIN_S`: the code below may swallow the first interruption.
    # The handler comes first: an alarm without one ends the process.
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, timeout_s, AGAIN_S)
    try:
        try:
            yield
        finally:
            # In this order, too: a last alarm must not reach the handler of before.
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    except _Overdue as error:
        raise call.overdue() from error


def _location(owner: Any, method: str) -> str:
    """Source location of a method; only its class's file if the line is not known.

    If the method is ours and calls one of the user's, the location is that of the user's.
    """
    code = _code_of(owner, method)
    if code is None or _is_ours(code.co_filename):
        called = _CALLS.get(method, method)
        theirs = _code_of(owner, called)
        if theirs is not None and not _is_ours(theirs.co_filename):
            code, method = theirs, called

    if code is None:
        return f"{Path(_source_of(owner)).name or type(owner).__name__} in {method}"

    return f"{Path(code.co_filename).name}:{code.co_firstlineno} in {method}"


def _code_of(owner: Any, method: str) -> CodeType | None:
    """The code of a method, if it is written in Python."""
    function = getattr(owner, method, None)
    if function is None:
        return None

    # Unwrapped: the location of a decorator is not that of the method.
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _source_of(owner: Any) -> str:
    """The file of a class, or of the class of an object; empty if unknown."""
    described = owner if isinstance(owner, type) else type(owner)
    try:
        return inspect.getsourcefile(described) or ""
    except (OSError, TypeError):
        return ""


def _is_ours(file: str) -> bool:
    # `<string>`, `<frozen …>`: code without a file, which nobody could open.
    return file.startswith((_OWN, "<"))


def show(value: object, instead: str, limit: int = 400) -> str:
    """A user's own object as a message quotes it: it may fail even to say what it is."""
    try:
        return one_line(value, limit)
    except Exception:  # noqa: BLE001
        return instead
