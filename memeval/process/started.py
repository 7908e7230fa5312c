"""Everything that memeval starts ends with it: the process groups and folders of this process.

Programs run in their own process groups, so that only memeval gets Ctrl-C from a terminal. If
memeval ends without cleaning up (SIGKILL, `os._exit`, a crash), its pipe to the guardian closes,
and the guardian kills the groups that are left.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from memeval.process import guardian
from memeval.process.leftovers import owner

_lock = threading.Lock()
_groups: set[int] = set()
_folders: set[str] = set()
_pipe: int | None = None
"""This process's end of the pipe to the guardian."""


def adopt(group: int) -> None:
    """From now on, a process group ends with this process."""
    with _lock:
        _groups.add(group)
        _notify_guardian(f"+ group {group}")


def end(group: int) -> None:
    """Kills the rest of a process group."""
    with _lock:
        if group not in _groups:
            return

        _groups.discard(group)
        guardian.end_group(group)
        _notify_guardian(f"- group {group}")


def end_all() -> None:
    """Kills every process group that was adopted and is still there, and removes the folders."""
    for group in list(_groups):
        end(group)

    for folder in list(_folders):
        remove_folder(Path(folder))


def make_folder(purpose: str, *, guarded: bool = True) -> Path:
    """A temporary folder named after this process, with which it is removed.

    If it is not `guarded`, other processes may name it, and a killed process leaves it behind.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"memeval-{purpose}-{owner()}-"))
    if guarded:
        adopt_folder(folder)
    else:
        _folders.add(str(folder))

    return folder


def adopt_folder(folder: Path) -> None:
    """From now on, the folder and all processes that name it end with this process."""
    with _lock:
        _folders.add(str(folder))
        _notify_guardian(f"+ folder {folder}")


def end_folder(folder: Path) -> None:
    """Kills the other processes that name a folder, and removes it."""
    guardian.end_folder(str(folder))
    remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Removes a folder whose processes have ended."""
    with _lock:
        _folders.discard(str(folder))
        shutil.rmtree(folder, ignore_errors=True)
        _notify_guardian(f"- folder {folder}")


def _notify_guardian(line: str) -> None:
    """Writes to the guardian, which is started for the first group or folder to guard."""
    global _pipe  # noqa: PLW0603 - there is one per process
    if _pipe is None:
        if line.startswith("-"):
            return

        _pipe = _start_guardian()

    with suppress(OSError):
        os.write(_pipe, line.encode() + b"\n")


def _start_guardian() -> int:
    """Starts the guardian; returns this end of its pipe, which closes with this process."""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", guardian.__file__],
        stdin=reader,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # It must survive anything that ends this process, including Ctrl-C and a kill of its group.
        start_new_session=True,
    )
    os.close(reader)
    # subprocess warns about a child that was not waited for; this one is left running on purpose.
    process.returncode = 0
    return writer


def _forget() -> None:
    """In a forked process: forgets the processes and folders of its parent."""
    global _pipe, _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _groups.clear()
    _folders.clear()
    if _pipe is not None:
        # The parent's guardian must notice the parent's end even while this process lives.
        os.close(_pipe)

    _pipe = None


os.register_at_fork(after_in_child=_forget)
atexit.register(end_all)
