"""Temporary folders, named after their process: those of killed processes are removed."""

import os
import platform
import re
import shutil
import tempfile
import time
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

SUFFIX = ".tmp"
OLD_S = 24 * 3600.0
"""What an unknown process, or one on another machine, has left is kept for this long."""
GONE = "gone"
"""Used instead of the start time of a process that no longer runs."""
_OWNER = re.compile(r"\d{1,10}(?:-\d+(?:-[0-9a-f]{8})?)?")
_TEMPORARY = "memeval-"
_OWNED = re.compile(rf"{_TEMPORARY}[a-z0-9]+-(\d{{1,10}}-\d+(?:-[0-9a-f]{{8}})?)-")
_UNOWNED = re.compile(rf"{_TEMPORARY}(mem0|package|plan|check)-[a-z0-9_]{{8}}$")
"""Names without an owner: folders that are used for minutes, and those of earlier versions."""
_BESIDE = re.compile(r"\.(\d{1,10}-\d+-[0-9a-f]{8})\.[a-z0-9_]{8}\.tmp")


@cache
def owner() -> str:
    """This process as a part of a name: its id, its start time (ids are reused), and its machine
    (several may share a home).
    """
    return f"{os.getpid()}-{_start_time(os.getpid())}-{_machine()}"


def _machine() -> str:
    return sha256(platform.node().encode()).hexdigest()[:8]


def temporary_name(target: Path, mark: str) -> Path:
    """A temporary name for the future folder `target`, which contains the folder's owner."""
    return target.with_name(f".{target.name}.{owner()}.{mark}{SUFFIX}")


def sweep_temporary() -> None:
    """Removes the temporary folders of dead processes."""
    for path in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*"):
        if owned := _OWNED.match(path.name):
            if is_abandoned(owned[1], path):
                remove(path)
        elif _UNOWNED.match(path.name) and is_abandoned("", path):
            remove(path)


@cache
def sweep_beside(folder: Path) -> None:
    """Removes what dead processes left in a folder while they wrote a file there.

    Only once per process: it reads the whole folder, which may contain many files.
    """
    for left in folder.glob(f".*{SUFFIX}"):
        owned = _BESIDE.fullmatch(left.name)
        if owned and is_abandoned(owned[1], left):
            remove(left)


@cache
def sweep(folder: Path) -> None:
    """Removes leftovers of dead processes in the subfolders of `folder`, and in their subfolders.

    Only once per process, as all of them are read.
    """
    for path in [*folder.glob(f"*/.*{SUFFIX}"), *folder.glob(f"*/*/.*{SUFFIX}")]:
        if is_leftover(path):
            remove(path)


def is_leftover(path: Path) -> bool:
    """Whether the process that created a temporary file or folder is gone."""
    parts = path.name.removesuffix(SUFFIX).split(".")
    return is_abandoned(next(filter(_OWNER.fullmatch, parts[-2:]), ""), path)


def remove(path: Path) -> None:
    """Removes a file or a folder; for a link only the link, not its target."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def is_abandoned(name: str, path: Path) -> bool:
    """Whether the process in `name` is gone; if this machine can't know, whether `path` is old."""
    number, began, machine = (*name.split("-"), "", "")[:3]
    if not number or machine not in ("", _machine()):
        return _is_old(path)

    start = _start_time(int(number))
    return start != began if began else start == GONE


def _start_time(process: int) -> str:
    """Start time of a process, in ticks since the machine booted.

    `gone` if it no longer runs, `0` if its start is unknown.
    """
    try:
        os.kill(process, 0)  # signal 0 only tests whether the process exists
    except (ProcessLookupError, OverflowError):
        return GONE
    except OSError:  # another user's process, which is alive
        pass

    try:
        # Field 22 is the start time. Field 2, the name, may contain spaces and brackets: fields are
        # counted after it.
        return (
            Path(f"/proc/{process}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()[19]
        )
    except (OSError, IndexError):
        return "0"


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > OLD_S
    except OSError:
        return False
