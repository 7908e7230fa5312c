"""Names the source location in a user's own code at which something went wrong, on one line."""

from __future__ import annotations

import inspect
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

from memeval.errors import MemevalError, SystemFaultError
from memeval.text.shown import one_line

_OWN = str(Path(__file__).resolve().parents[2])
"""Our own package, whose frames are named only if there are no others."""

Frames = list[tuple[str, int]]
"""File and line of each call on a stack, from the outermost to the innermost."""


def fault(error: BaseException, owner: Any, method: str) -> MemevalError:
    """A method's error on one line with its location, unless it was raised on purpose."""
    if isinstance(error, MemevalError):
        return error

    frames = frames_of_error(error)
    # A call with wrong arguments fails in our frame: no line of the user's code was reached.
    is_theirs = not all(_is_ours(file) for file, _ in frames)
    location = locate(frames, owner, method) if is_theirs else locate_method(owner, method)

    name, message = type(error).__name__, show(error, "(its message can't be shown)")
    described = f"{name}: {message}" if message else name
    raised = SystemFaultError(f"{location}: {described}")
    # Set here, as an error of a thread is raised again without it.
    raised.__cause__ = error
    return raised


def frames_of_error(error: BaseException) -> Frames:
    """The calls that an error came through."""
    steps = traceback.walk_tb(error.__traceback__)
    return [(frame.f_code.co_filename, line) for frame, line in steps]


def frames_of_thread(frame: FrameType | None) -> Frames:
    """The calls of a running thread, given its innermost frame."""
    steps = traceback.walk_stack(frame)
    return [(step.f_code.co_filename, line) for step, line in steps][::-1]


def frames_of_coroutine(running: Any) -> Frames:
    """A suspended coroutine, and whatever it waits for in turn."""
    frames: Frames = []
    while running is not None:
        frame = getattr(running, "cr_frame", None) or getattr(running, "gi_frame", None)
        if frame is not None:
            frames.append((frame.f_code.co_filename, frame.f_lineno))

        running = getattr(running, "cr_await", None) or getattr(running, "gi_yieldfrom", None)

    return frames


def locate(frames: Frames, owner: Any, method: str) -> str:
    """`my_system.py:12 in answer`: the frame that a user can act on."""
    # The user's own file says most. Of a library's frames the outermost is nearest to the user's
    # call, and of ours the innermost to the fault.
    source = _source_of(owner)
    theirs = [frame for frame in frames if source and frame[0] == source]
    foreign = [frame for frame in frames if not _is_ours(frame[0])]
    for file, line in [*theirs[-1:], *foreign[:1], *frames[-1:]]:
        return f"{Path(file).name}:{line} in {method}"

    return f"{Path(source).name} in {method}" if source else method


def locate_method(owner: Any, method: str) -> str:
    """Source location of a method; only its class's file if the line is not known."""
    # Unwrapped: the location of a decorator is not that of the method.
    code = getattr(inspect.unwrap(getattr(owner, method, None) or (lambda: None)), "__code__", None)
    if code is None:
        return f"{Path(_source_of(owner)).name or type(owner).__name__} in {method}"

    return f"{Path(code.co_filename).name}:{code.co_firstlineno} in {method}"


def show(value: object, instead: str, limit: int = 400) -> str:
    """A user's own object as a message quotes it: it may fail even to say what it is."""
    try:
        return one_line(value, limit)
    except Exception:  # noqa: BLE001
        return instead


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
