"""Names the source location in a user's own code at which something went wrong, on one line."""

from __future__ import annotations

import inspect
import traceback
from pathlib import Path
from types import CodeType
from typing import Any

from memeval.errors import MemevalError, SystemFaultError
from memeval.text.shown import one_line

_OWN = str(Path(__file__).resolve().parents[2])
"""Our own package, whose frames are named only if there are no others."""
_CALLS = dict.fromkeys(("answer", "probe", "tools", "tool search_memory"), "recall")
"""The method of a user that ours calls, by the name of ours."""


def fault(error: BaseException, owner: Any, method: str) -> MemevalError:
    """A method's error on one line with its location, unless it was raised on purpose."""
    if isinstance(error, MemevalError):
        return error

    steps = traceback.walk_tb(error.__traceback__)
    frames = [(frame.f_code.co_filename, line) for frame, line in steps]
    foreign = [frame for frame in frames if not _is_ours(frame[0])]
    source = _source_of(owner)
    theirs = [frame for frame in frames if frame[0] == source]
    if foreign:
        # The user's own file says most; of a library's frames the outermost is nearest to it.
        file, line = theirs[-1] if theirs else foreign[0]
        location = f"{Path(file).name}:{line} in {method}"
    else:
        # A call with wrong arguments fails in our frame: no line of the user's code was reached.
        location = locate_method(owner, method)

    name, message = type(error).__name__, show(error, "(its message can't be shown)")
    described = f"{name}: {message}" if message else name
    raised = SystemFaultError(f"{location}: {described}")
    # Set here, as an error of a thread is raised again without it.
    raised.__cause__ = error
    return raised


def locate_method(owner: Any, method: str) -> str:
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
