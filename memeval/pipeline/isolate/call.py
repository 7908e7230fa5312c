"""One call of a system's method: its time limit, and where it failed in the user's code."""

import inspect
import signal
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

from msgspec import Struct, field

from memeval.config.classes import is_built_in, is_ours
from memeval.errors import MemevalError, SystemFaultError
from memeval.llm.metering import current_ledger
from memeval.text.shown import one_line

T = TypeVar("T")
AGAIN_S = 0.5
"""Seconds between two interruptions of an overdue call, which may swallow one."""
TOOL = "tool "
"""Prefix of a tool's name in a message, in place of a method's name."""
_CALLS = dict.fromkeys(("answer", "probe", "tools", "tool search_memory"), "recall")
"""The user's method that a built-in method calls, by the name of the built-in method."""


class SystemCall(Struct):
    case_id: str
    owner: Any
    """The system, or its class before there is a system."""
    method: str
    timeout_s: float | None = None
    since: float = field(default_factory=time.monotonic)
    is_stopped: bool = False
    """Whether it must not continue: it was abandoned, or the run is being stopped."""

    def describe(self) -> str:
        """The call as named in messages."""
        owner = self.owner if isinstance(self.owner, type) else type(self.owner)
        # Users know their own system by its file, and built-in systems by their class.
        name = owner.__name__ if is_built_in(owner) else owner.__module__.rpartition(".")[2]
        return f"case {one_line(self.case_id, 60)}: {name}.{self.method}"

    def fault(self, error: BaseException) -> MemevalError:
        """The method's error on one line with its location; a `MemevalError` is returned as it is.

        Unlike `StopIteration` and some others, the result may pass through an event loop.
        """
        if isinstance(error, MemevalError):
            return error

        name, message = type(error).__name__, show(error, "(its message can't be shown)")
        described = f"{name}: {message}" if message else name
        fault = SystemFaultError(f"{self._location_of(error)}: {described}")
        # Set here: an error from a thread is raised again without its cause.
        fault.__cause__ = error
        return fault

    def _location_of(self, error: BaseException) -> str:
        steps = traceback.walk_tb(error.__traceback__)
        frames = [(frame.f_code.co_filename, line) for frame, line in steps]
        foreign = [frame for frame in frames if not is_ours(frame[0])]
        if not foreign:
            # A call with wrong arguments fails in memeval's frame, before any line of the user's
            # code.
            return _location(self.owner, self.method)

        source = _source_of(self.owner)
        own = [frame for frame in frames if frame[0] == source]
        # The user's own file is most informative; among a library's frames, the outermost is
        # closest to it.
        file, line = own[-1] if own else foreign[0]
        return f"{Path(file).name}:{line} in {self.method}"

    def misuse(self, problem: str) -> SystemFaultError:
        """The error for a method that broke its contract without raising anything."""
        method = "tools" if self.method.startswith(TOOL) else self.method
        return SystemFaultError(f"{_location(self.owner, method)}: {problem}")

    def overdue(self) -> SystemFaultError:
        """The error for a call that took longer than its time limit."""
        limit = f"did not finish within {self.timeout_s:g} s (system.timeout_s)"
        return self.misuse(f"{limit}; it was abandoned")

    def run(self, step: Callable[[], T]) -> T:
        """Runs plain code on the loop's thread, up to its time limit. Raises `MemevalError`."""
        try:
            with _time_limit(self):
                return step()
        except BaseException as error:
            raise self.fault(error) from error

    def attribute(self, name: str) -> Any:
        """An attribute of the system, whose code may run to get it. Raises `MemevalError`."""
        return self.run(lambda: getattr(self.owner, name))


class Steps:
    """Runs a coroutine in timed steps with a time limit; in between, the event loop is free."""

    def __init__(self, inner: Awaitable[Any], call: SystemCall | None = None) -> None:
        """`call` has the time limit; without `call` there is no limit."""
        # Only a coroutine can be driven step by step: a future works elsewhere.
        self._inner = inner if isinstance(inner, Coroutine) else _wait_for(inner)
        self._call = call

    def __await__(self) -> Generator[Any, Any, Any]:
        inner, own_work = self._inner, current_ledger().own_work
        step: Callable[[Any], Any] = inner.send
        sent: Any = None
        while True:
            try:
                with _time_limit(self._call), own_work.running():
                    awaited = step(sent)
            except StopIteration as end:
                return end.value

            # A bare `yield` only lets other tasks run, and waits for nothing.
            began = None if awaited is None else own_work.begin_wait()
            try:
                step, sent = inner.send, (yield awaited)
            except BaseException as error:  # noqa: BLE001
                # Thrown into the coroutine, as `await` does.
                step, sent = inner.throw, error
            finally:
                own_work.end_wait(began)


async def _wait_for(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


class _Overdue(BaseException):
    """Raised inside an overdue call; a BaseException, so that few handlers swallow it."""


@contextmanager
def _time_limit(call: SystemCall | None) -> Iterator[None]:
    """Interrupts code at its call's time limit, on the main thread. Raises `SystemFaultError`."""
    timeout_s = None if call is None else call.timeout_s
    is_main = threading.current_thread() is threading.main_thread()
    if call is None or timeout_s is None or not is_main:
        yield
        return

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
            # The order matters here, too: a last alarm must not reach the previous handler.
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    except _Overdue as error:
        raise call.overdue() from error


def _location(owner: Any, method: str) -> str:
    """Source location of a method; only its class's file if the line is not known.

    If a built-in method calls one of the user's, the location is that of the user's method.
    """
    code = _code_of(owner, method)
    if code is None or is_ours(code.co_filename):
        called = _CALLS.get(method, method)
        called_code = _code_of(owner, called)
        if called_code is not None and not is_ours(called_code.co_filename):
            code, method = called_code, called

    if code is None:
        return f"{Path(_source_of(owner)).name or type(owner).__name__} in {method}"

    return f"{Path(code.co_filename).name}:{code.co_firstlineno} in {method}"


def _code_of(owner: Any, method: str) -> CodeType | None:
    """The code of a method, if it is written in Python."""
    function: Any = getattr(owner, method, None)
    # Unwrapped: a decorator's location is not the method's.
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _source_of(owner: Any) -> str:
    """The file of a class, or of the class of an object; empty if unknown."""
    described = owner if isinstance(owner, type) else type(owner)
    try:
        return inspect.getsourcefile(described) or ""
    except (OSError, TypeError):
        return ""


def show(value: object, instead: str, limit: int = 400) -> str:
    """A user's object as text for a message; `instead` if the object can't be converted to text."""
    try:
        return one_line(value, limit)
    except Exception:  # noqa: BLE001
        return instead
