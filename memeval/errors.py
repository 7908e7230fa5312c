"""The errors that memeval raises on purpose.

A `UserError` is a mistake that the user can fix: the command line prints it on one line, without a
traceback, and exits with status 2. A `WorldError` is a fault of the outside world (an endpoint, a
disk): it becomes the status of the affected record, never a score.
"""

import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from operator import ge, gt, le
from typing import Any

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""Numbers of the errors of a disk that is full, write-protected or broken."""


class MemevalError(Exception):
    """Base of all errors raised on purpose."""


class UserError(MemevalError):
    """A user's mistake: what is wrong, where, and how to fix it; `hints` are printed below, one per
    line.
    """

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.message = message
        self.hints = hints

    @property
    def line(self) -> str:
        """The message and its hints on one line."""
        return "; ".join((self.message.removesuffix("."), *self.hints))


_BOUNDS: Mapping[str, tuple[str, Callable[[float, float], bool]]] = {
    "above": ("above", gt),
    "least": ("at least", ge),
    "most": ("at most", le),
}


def check_number(name: str, value: float | None, bounds: Mapping[Any, Any]) -> None:
    """Raises `UserError` for a number outside its bounds `above`, `least` and `most`, of which any
    may be missing, and for NaN; None is allowed.
    """
    for bound, (word, fits) in _BOUNDS.items():
        if value is not None and bound in bounds and not fits(value, bounds[bound]):
            # A huge integer can't be converted to a float.
            shown = f"{value:,}" if isinstance(value, int) else f"{value:,.15g}"
            raise UserError(f"{name} must be {word} {bounds[bound]:,.15g}, not {shown}")


def require_library(module: str, needed: str, extra: str) -> None:
    """Raises `UserError` if an optional library is not installed.

    `needed` is the message, such as `system=mcp needs the mcp library`; `extra` is the extra of
    memeval's own package that installs it.
    """
    spec = find_spec(module)
    # A folder of that name, such as wandb leaves, looks like a package without a file.
    if spec is None or spec.origin is None:
        hint = f"install it:  pip install 'memeval-bench[{extra}]'"
        raise UserError(f"{needed}, which is not installed", hint)


class RefusedError(MemevalError):
    """A sweep does not start, because some of its cells can't run."""

    def __init__(self, errors: Sequence[UserError], cells: int) -> None:
        super().__init__(f"{len(errors)} of {cells} runs can't be started")
        self.errors = errors
        self.leaves_others = len(errors) < cells
        """Whether other cells can run."""


class WorldError(MemevalError):
    """A fault of the outside world, after all retries that made sense."""


class StorageError(WorldError):
    """Results can't be written: the run stops and keeps the rows already written."""


class BudgetError(WorldError):
    """The next call might exceed the budget: the run stops, and finished rows are kept."""


class ModelError(WorldError):
    """A model call failed permanently: refused, out of retries, or its reply has no answer."""


class MemoryServiceError(ModelError):
    """A memory outside this process failed, or gave an invalid reply."""


class SystemFaultError(MemevalError):
    """The user's own memory system broke the contract.

    The message names file, line and method.
    """


class IngestLossError(WorldError):
    """A memory lost more of its input than the config allows: it gets no questions."""


class FailedMemoryError(MemevalError):
    """A memory failed earlier in the invocation and is not tried again; the message says why."""


FEW = 8
"""Longest list of names that an error shows in full; otherwise it shows the nearest."""


def unknown(kind: str, name: str, known: Iterable[str], *hints: str) -> UserError:
    """The error for an unknown name, with the nearest known names.

    `hints` explain how to list all names if there are many.
    """
    names = sorted(known)
    if not names:
        return UserError(f"unknown {kind} '{name}': there are none", *hints)

    near = get_close_matches(str(name), names, n=3, cutoff=0.5)
    guess = f" Did you mean: {', '.join(near)}?" if near else ""
    if len(names) <= FEW or not (near or hints):
        guess += f" Available: {', '.join(names)}"

    return UserError(f"unknown {kind} '{name}'.{guess}", *hints)
