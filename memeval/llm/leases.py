"""Leases of requests: of all processes that want the same reply, the one with the lease asks.

By default a lease is a locked byte of a file. The kernel drops the locks of a process that dies, so
no clock is read, and a lock holds no data, so a full disk does not matter. If the system or the
file system lacks such locks, leases hold within this process only.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, Self

from memeval.errors import StorageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_TAKEN = (errno.EACCES, errno.EAGAIN)


class Leases(Protocol):
    """The requests under way of all that use one cache. Keys are sha256 in hexadecimal."""

    async def take(self, keys: Iterable[str]) -> set[str]:
        """Takes the leases that nobody holds, and returns their keys.

        Raises `StorageError` if the store refuses.
        """

    def give(self, keys: Iterable[str]) -> None:
        """Gives leases of this process back."""


def lock_of(key: str) -> tuple[str, int]:
    """The name and the number of a key's lock."""
    # Sixteen names: the kernel searches a file's locks one by one. 60 bits: an offset has 63.
    return f"claims-{key[0]}", int(key[1:16], 16)


class FileLeases:
    """Leases as locked bytes of files, shared by the processes of one machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def beside(cls, cache: Path) -> Self:
        """The leases of all users of the cache at that path."""
        return cls(cache.parent / "locks")

    async def take(self, keys: Iterable[str]) -> set[str]:
        taken = set()
        for key in keys:
            name, number = lock_of(key)
            if _LockedBytes.at(self._folder / name).take(number):
                taken.add(key)

        return taken

    def give(self, keys: Iterable[str]) -> None:
        for key in keys:
            name, number = lock_of(key)
            _LockedBytes.at(self._folder / name).give(number)


class _LockedBytes:
    """The locks of one file. Use `at`: two objects for one file would drop each other's locks."""

    # Never closed: to close any descriptor of a file drops all the process's locks on it.

    def __init__(self, path: Path) -> None:
        self._held: set[int] = set()
        self._guard = threading.Lock()

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(f"{path} can't be opened: {error.strerror or error}") from error

    @classmethod
    def at(cls, path: Path) -> _LockedBytes:
        """The process's locks on the file at `path`, which is made if it is missing."""
        with _opening:
            if path not in _open:
                _open[path] = cls(path)

            return _open[path]

    def take(self, number: int) -> bool:
        """Locks a byte unless this or another process holds it; returns whether it did."""
        with self._guard:
            if number in self._held or not self._lock(number):
                return False

            self._held.add(number)
            return True

    def give(self, number: int) -> None:
        """Unlocks a byte that this process holds."""
        with self._guard:
            if number in self._held:
                self._held.discard(number)
                self._unlock(number)

    def _lock(self, number: int) -> bool:
        if fcntl is None:
            return True

        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except OSError as error:
            # Any other error means that the file system lacks such locks: then all are free.
            return error.errno not in _TAKEN

        return True

    def _unlock(self, number: int) -> None:
        if fcntl is None:
            return

        try:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)
        except OSError:
            return


_open: dict[Path, _LockedBytes] = {}
_opening = threading.Lock()

if hasattr(os, "register_at_fork"):
    # A child does not inherit locks, so it must not reuse the objects of its parent.
    os.register_at_fork(after_in_child=_open.clear)
