"""Locks on single bytes of a file, which the processes of one home share.

The kernel drops them when a process dies, so there are no leases, and no clock is read. A lock does
not hold data, so a full disk does not matter. Where the system or the file system lacks such locks,
the limits hold within this process only.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from memeval.errors import StorageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_TAKEN = (errno.EACCES, errno.EAGAIN)
_open: dict[Path, ByteLocks] = {}
_opening = threading.Lock()


class Locks(Protocol):
    """Numbered locks, and notes beside them, that processes share: those of a file, or of a
    database.
    """

    poll_s: float
    """Seconds between two looks of a process that waits for another one's lock."""

    def take(self, offset: int) -> bool:
        """Takes a lock unless this or another process holds it; returns whether it did."""

    def take_first(self, offsets: Iterable[int]) -> int | None:
        """Takes the first lock that nobody holds, if there is one."""

    def give(self, offset: int) -> None:
        """Gives back a lock that this process holds."""

    def free(self, start: int, length: int) -> bool:
        """Whether no other process holds any of these locks; none may be held by this one."""

    def read(self, length: int) -> bytes:
        """The notes, from their beginning."""

    def write(self, offset: int, data: bytes) -> None:
        """Writes a note for other processes."""


LocksByName = Callable[[str], Locks]
"""The locks of a name. The same name gives the same object within a process."""


def locks_in(where: Path | LocksByName) -> LocksByName:
    """The locks that a folder holds as files; what gives locks already stays as it is."""
    if isinstance(where, Path):
        folder = where
        return lambda name: ByteLocks.at(folder / name)

    return where


class ByteLocks:
    """The locks of one file. Use `at`: a process has one object per file."""

    poll_s = 0.01

    # Never closed: to close any descriptor of a file drops all the process's locks on it.

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: set[int] = set()
        self._guard = threading.Lock()

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(f"{path} can't be opened: {error.strerror or error}") from error

    @classmethod
    def at(cls, path: Path) -> ByteLocks:
        """The process's locks on the file at `path`.

        Raises `StorageError` where the file can't be made.
        """
        path = path.absolute()

        with _opening:
            if path not in _open:
                # One object per file, because two would drop each other's locks (see `ByteLocks`).
                _open[path] = cls(path)

            return _open[path]

    def take(self, offset: int) -> bool:
        """Locks a byte unless this or another process holds it; returns whether it did."""
        with self._guard:
            if offset in self._held or not self._lock(offset, 1, exclusive=True):
                return False

            self._held.add(offset)
            return True

    def take_first(self, offsets: Iterable[int]) -> int | None:
        """Locks the first byte that nobody holds, if there is one."""
        return next((offset for offset in offsets if self.take(offset)), None)

    def give(self, offset: int) -> None:
        """Unlocks a byte that this process holds."""
        with self._guard:
            if offset in self._held:
                self._held.discard(offset)
                self._unlock(offset, 1)

    def free(self, start: int, length: int) -> bool:
        """Whether no other process holds any of the bytes; none of them may be held by this one."""
        if length <= 0:
            return True

        with self._guard:
            # A shared lock is refused only where another process holds an exclusive one. Own locks
            # refuse nothing and would be dropped by `_unlock`, so none of them may be in the
            # range.
            if not self._lock(start, length, exclusive=False):
                return False

            self._unlock(start, length)
            return True

    def read(self, length: int) -> bytes:
        """The file's content; empty where it can't be read."""
        try:
            return os.pread(self._file, length, 0)
        except OSError:
            return b""

    def write(self, offset: int, data: bytes) -> None:
        """Writes a note for other processes into the file; does nothing on a full disk."""
        try:
            os.pwrite(self._file, data, offset)
        except OSError:
            return

    def _lock(self, start: int, length: int, *, exclusive: bool) -> bool:
        if fcntl is None:
            return True

        mode = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        try:
            fcntl.lockf(self._file, mode | fcntl.LOCK_NB, length, start)
        except OSError as error:
            # Any other error means that the file system lacks such locks: then all are free.
            return error.errno not in _TAKEN

        return True

    def _unlock(self, start: int, length: int) -> None:
        if fcntl is None:
            return

        try:
            fcntl.lockf(self._file, fcntl.LOCK_UN, length, start)
        except OSError:
            return


if hasattr(os, "register_at_fork"):
    # A child does not inherit locks, so it must not reuse the objects of its parent.
    os.register_at_fork(after_in_child=_open.clear)
