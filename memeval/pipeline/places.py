"""Tells where in a user's own code something went wrong: file, line and method, on one line."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from memeval.errors import MemevalError, SystemFaultError
from memeval.shown import one_line

_OWN = str(Path(__file__).resolve().parents[1])
"""Our own package, whose frames are named only where there are no others."""
MESSAGE_LENGTH = 400


def source_of(described: type[Any]) -> str:
    """The file of a class; empty where it has none."""
    try:
        return inspect.getsourcefile(described) or ""
    except (OSError, TypeError):
        return ""


def fault(error: BaseException, method: str, source: str = "", owner: Any = None) -> MemevalError:
    """What a system raised, as one line with its place.

    An error that was raised on purpose says enough by itself.

    Where no code of `owner` ran, as it takes other arguments than it is given, the place is where
    the method begins.
    """
    if isinstance(error, MemevalError):
        return error

    name = type(error).__name__
    message = _message_of(error)
    described = f"{name}: {message}" if message else name
    place = place_of(error.__traceback__, method, source)
    # A call with wrong arguments fails in our frame: no line of the user's code was reached.
    if owner is not None and all(
        _is_ours(frame.f_code.co_filename) for frame, _ in traceback.walk_tb(error.__traceback__)
    ):
        place = place_of_method(owner, method, source)

    return SystemFaultError(f"{place}: {described}")


def place_of(trace: TracebackType | None, method: str, source: str = "") -> str:
    """`my_system.py:12 in answer`: the innermost line of the system's own file, else of other
    foreign code, else of ours.
    """
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    return _choose_frame(frames, method, source)


def place_in_stack(frame: FrameType | None, method: str, source: str = "") -> str:
    """The place that a running call has reached, given its innermost frame."""
    frames = [(step.f_code.co_filename, line) for step, line in traceback.walk_stack(frame)]
    # `walk_stack` begins with the innermost frame, `walk_tb` with the outermost.
    return _choose_frame(frames[::-1], method, source)


def place_in_coroutine(running: Any, method: str, source: str = "") -> str:
    """The place at which a suspended coroutine waits, or whatever it waits for in turn."""
    frames: list[tuple[str, int]] = []
    while running is not None:
        frame = getattr(running, "cr_frame", None) or getattr(running, "gi_frame", None)
        if frame is not None:
            frames.append((frame.f_code.co_filename, frame.f_lineno))

        running = getattr(running, "cr_await", None) or getattr(running, "gi_yieldfrom", None)

    return _choose_frame(frames, method, source)


def place_of_method(owner: Any, method: str, source: str = "") -> str:
    """Where a method begins; only its class's file where that is not known."""
    # Unwrapped: the place of a decorator is not that of the method.
    code = getattr(inspect.unwrap(getattr(owner, method, None) or (lambda: None)), "__code__", None)
    if code is None:
        return f"{Path(source).name or type(owner).__name__} in {method}"

    return f"{Path(code.co_filename).name}:{code.co_firstlineno} in {method}"


def _choose_frame(frames: Iterable[tuple[str, int]], method: str, source: str) -> str:
    """The place that a user can act on, of frames from the outermost to the innermost."""
    # The user's own file says most. Of a library's frames the outermost is nearest to the user's
    # call, and of ours the innermost to the fault.
    innermost = list(frames)[::-1]
    theirs = [frame for frame in innermost if source and frame[0] == source]
    foreign = [frame for frame in innermost if not _is_ours(frame[0])]
    outermost_foreign = foreign[-1:]
    for file, line in [*theirs[:1], *outermost_foreign, *innermost[:1]]:
        return f"{Path(file).name}:{line} in {method}"

    return f"{Path(source).name} in {method}" if source else method


def _is_ours(file: str) -> bool:
    # `<string>`, `<frozen …>`: code without a file, which nobody could open.
    return file.startswith((_OWN, "<"))


def _message_of(error: BaseException) -> str:
    try:
        return one_line(error, MESSAGE_LENGTH)
    except Exception:  # noqa: BLE001 - an exception of a user's own may fail even to say what it is
        return "(its message can't be shown)"
