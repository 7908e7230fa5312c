"""Locks on single bytes of a file: they tell the processes of one home apart, and the kernel drops
them when a process dies.

No lease runs out and no clock is read. A lock holds no data, so that a full disk takes nothing
away. Where the system or the file system has no such locks, only this process is bounded.
"""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

from memeval.errors import StorageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_TAKEN = (errno.EACCES, errno.EAGAIN)
_open: dict[Path, ByteLocks] = {}
_opening = threading.Lock()


class ByteLocks:
    """The locks of one file. There is one object per file in a process, never closed: to close any
    descriptor of a file drops all its locks."""

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
        """The process's locks of the file at `path`. Raises `StorageError` where the file can't be
        made."""
        path = path.absolute()

        with _opening:
            if path not in _open:
                _open[path] = cls(path)

            return _open[path]

    def take(self, offset: int) -> bool:
        """Locks a byte unless this or another process holds it; says whether it did."""
        with self._guard:
            if offset in self._held or not self._lock(offset, 1, exclusive=True):
                return False

            self._held.add(offset)
            return True

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
            if not self._lock(start, length, exclusive=False):
                return False

            self._unlock(start, length)
            return True

    def read(self, length: int) -> bytes:
        """What lies in the file; nothing where it can't be read."""
        try:
            return os.pread(self._file, length, 0)
        except OSError:
            return b""

    def write(self, offset: int, data: bytes) -> None:
        """Leaves a note for others in the file; on a full disk there is none."""
        try:
            os.pwrite(self._file, data, offset)
        except OSError:
            return

    def _lock(self, start: int, length: int, *, exclusive: bool) -> bool:
        if fcntl is None:
            return True

        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        try:
            fcntl.lockf(self._file, kind | fcntl.LOCK_NB, length, start)
        except OSError as error:
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
    os.register_at_fork(after_in_child=_open.clear)  # a child inherits no lock
