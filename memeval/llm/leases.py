"""Leases: of all processes that want the same reply, the one with the lease sends the request.

By default a lease is a locked byte of a file. The kernel drops the locks of a process that dies, so
no clock is read, and a lock holds no data, so a full disk does not matter. On a file system without
such locks, leases apply only within this process.
"""

import errno
import fcntl
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from memeval.results.files import writing

_TAKEN = (errno.EACCES, errno.EAGAIN)


class Leases(Protocol):
    """Leases of requests, shared by all users of one cache. Keys are sha256 in hexadecimal."""

    async def acquire(self, keys: Iterable[str]) -> set[str]:
        """Takes the free leases, and returns their keys. Raises `StorageError`."""

    def release(self, keys: Iterable[str]) -> None:
        """Releases leases of this process."""


def lock_of(key: str) -> tuple[str, int]:
    """The file name and the byte number of a key's lock."""
    # Sixteen files: the kernel searches a file's locks one by one. 60 bits: an offset has only 63.
    return f"claims-{key[0]}", int(key[1:16], 16)


class FileLeases:
    """Leases as locked bytes of the files in a folder, shared by the processes of one machine.

    Use `leases_in`: a process has one object per folder, because the kernel would grant it a byte
    that it has locked already.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._held: set[str] = set()
        self._files: dict[str, int] = {}
        """Descriptors, never closed: that would drop all of the process's locks on the file."""

    async def acquire(self, keys: Iterable[str]) -> set[str]:
        with self._guard:
            return {key for key in keys if key not in self._held and self._lock(key)}

    def release(self, keys: Iterable[str]) -> None:
        with self._guard:
            for key in self._held.intersection(keys):
                self._held.discard(key)
                name, number = lock_of(key)
                with suppress(OSError):
                    fcntl.lockf(self._files[name], fcntl.LOCK_UN, 1, number)

    def _lock(self, key: str) -> bool:
        """Locks a key's byte unless another process holds it; returns whether the lease is ours."""
        name, number = lock_of(key)
        try:
            fcntl.lockf(self._open(name), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except OSError as error:
            # Any other error means that the file system has no such locks: all leases are free.
            if error.errno in _TAKEN:
                return False

        self._held.add(key)
        return True

    def _open(self, name: str) -> int:
        """The descriptor of a file, which is created if missing. Raises `StorageError`."""
        if name not in self._files:
            path = self._folder / name
            with writing(path, "opened"):
                self._folder.mkdir(parents=True, exist_ok=True)
                self._files[name] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

        return self._files[name]


_leases: dict[Path, FileLeases] = {}
# A child process does not inherit locks, so it must not treat its parent's as its own.
os.register_at_fork(after_in_child=_leases.clear)


def leases_in(folder: Path) -> FileLeases:
    """This process's leases in a folder."""
    return _leases.setdefault(folder, FileLeases(folder))
