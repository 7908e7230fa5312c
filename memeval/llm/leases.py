"""Leases of requests: of all processes that want the same reply, the one with the lease asks.

By default a lease is a locked byte of a file. The kernel drops the locks of a process that dies, so
no clock is read, and a lock holds no data, so a full disk does not matter. On a file system without
such locks, leases hold within this process only.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from memeval.errors import StorageError

_TAKEN = (errno.EACCES, errno.EAGAIN)


class Leases(Protocol):
    """The requests under way of all that use one cache. Keys are sha256 in hexadecimal."""

    async def take(self, keys: Iterable[str]) -> set[str]:
        """Takes the free leases, and returns their keys. Raises `StorageError`."""

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

    async def take(self, keys: Iterable[str]) -> set[str]:
        return {key for key in keys if _locks.take(*self._byte_of(key))}

    def give(self, keys: Iterable[str]) -> None:
        for key in keys:
            _locks.give(*self._byte_of(key))

    def _byte_of(self, key: str) -> tuple[str, int]:
        name, number = lock_of(key)
        return f"{self._folder}/{name}", number


class _Locks:
    """The bytes that this process has locked: the kernel would grant them to it again."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """A child does not inherit locks, so it must not take its parent's for its own."""
        self._guard = threading.Lock()
        self._held: set[tuple[str, int]] = set()
        self._files: dict[str, int] = {}
        """Descriptors. To close any of a file drops all the process's locks on it: none is."""

    def take(self, path: str, number: int) -> bool:
        """Locks a byte unless this or another process holds it; returns whether it did."""
        with self._guard:
            if (path, number) in self._held:
                return False

            try:
                fcntl.lockf(self._open(path), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            except OSError as error:
                # Any other error means that the file system lacks such locks: then all are free.
                if error.errno in _TAKEN:
                    return False

            self._held.add((path, number))
            return True

    def give(self, path: str, number: int) -> None:
        """Unlocks a byte that this process holds."""
        with self._guard:
            if (path, number) in self._held:
                self._held.discard((path, number))
                with suppress(OSError):
                    fcntl.lockf(self._files[path], fcntl.LOCK_UN, 1, number)

    def _open(self, path: str) -> int:
        """The descriptor of a file, which is made if it is missing. Raises `StorageError`."""
        if path not in self._files:
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                self._files[path] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise StorageError(f"{path} can't be opened: {error.strerror or error}") from error

        return self._files[path]


_locks = _Locks()
os.register_at_fork(after_in_child=_locks.forget)
