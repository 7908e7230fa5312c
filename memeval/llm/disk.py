"""Checks the disk that stores replies: a reply that can't be stored is paid for and lost."""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from memeval.errors import DISK_ERRORS, StorageError

RESERVE = 8 * 2**20
"""Bytes that must be free before a call is sent: for replies under way and SQLite's log."""
CHECK_S = 0.2
"""Seconds for which a disk check is valid."""


class Disk:
    """The folders in which a run stores paid results."""

    def __init__(
        self,
        folders: Sequence[Path],
        free: Callable[[Path], int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`free` returns the bytes that are free at a path."""
        self._folders, self._free, self._clock = folders, free or free_bytes, clock
        self._checked_at = float("-inf")

    def check(self) -> None:
        """Raises `StorageError` if a reply might not fit on the disk."""
        now = self._clock()
        if now - self._checked_at < CHECK_S:
            return

        for folder in self._folders:
            free = self._free(folder)
            if free < RESERVE:
                raise StorageError(
                    f"no call was sent: only {free / 2**20:.1f} MiB are free in {folder}, but "
                    f"storing replies needs {RESERVE / 2**20:.0f} MiB"
                )

        self._checked_at = now


def free_bytes(path: Path) -> int:
    """Free bytes on the file system of `path`, which need not exist yet."""
    while not path.exists() and path != path.parent:
        path = path.parent

    try:
        return shutil.disk_usage(path).free
    except OSError:
        # Some file systems don't report free space: only the first write shows it.
        return RESERVE


def is_about_disk(error: StorageError) -> bool:
    """Whether the error concerns the whole disk, so that no other file can be written either."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in DISK_ERRORS
