"""A partial download on disk: a file that only one download uses at a time."""

import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from io import FileIO
from pathlib import Path

from msgspec import Struct

_log = logging.getLogger(__name__)


class PartFile(Struct):
    """An open partial file, which is locked while it is open."""

    path: Path
    target: Path
    """The file that the part becomes."""
    file: int
    """File descriptor. The file is never reopened by name: the name may then be another file's."""

    def size(self) -> int:
        return os.fstat(self.file).st_size

    def digest(self) -> str:
        """sha256 of the content, in hexadecimal."""
        with FileIO(self.file, closefd=False) as content:
            content.seek(0)
            return file_digest(content, "sha256").hexdigest()

    def cut(self, size: int) -> None:
        """Keeps only the first `size` bytes, and continues after them."""
        os.ftruncate(self.file, size)
        os.lseek(self.file, size, os.SEEK_SET)

    def write(self, block: bytes) -> None:
        # `os.write` may write less than it is given.
        while block:
            block = block[os.write(self.file, block) :]

    def flush(self) -> None:
        os.fsync(self.file)

    def discard(self) -> None:
        """Removes the file: its content is of no use."""
        self.path.unlink(missing_ok=True)


@contextmanager
def part_file(target: Path) -> Iterator[PartFile]:
    """The partial file of `target`: that of an earlier download, which can be continued, or a new
    one. Waits until no other download uses it.

    A part that is not discarded stays if the download breaks off.
    """
    path = target.with_name(f"{target.name}.part")
    part = PartFile(path=path, target=target, file=_open_locked(path))
    try:
        yield part
    finally:
        if part.size() == 0:
            part.discard()

        os.close(part.file)


def _open_locked(path: Path) -> int:
    """A file descriptor of the locked file.

    Links and other users' files are never used, but replaced if permitted: a prepared folder can't
    make a download overwrite another file, and no other user can change a file after its check.
    """
    while True:
        if path.is_symlink():
            path.unlink(missing_ok=True)

        file, is_ours = _open(path)
        _lock(file, path)
        status = os.fstat(file)
        is_plain = stat.S_ISREG(status.st_mode) and status.st_nlink <= 1
        with suppress(FileNotFoundError):
            # While this process waited, the file may have become the target.
            if os.path.samestat(status, path.stat(follow_symlinks=False)):
                if is_plain and is_ours:
                    return file

                path.unlink()

        os.close(file)


def _open(path: Path) -> tuple[int, bool]:
    """A descriptor of the file, which is created if missing, and whether it is this user's."""
    # Without O_NONBLOCK, a named pipe would block forever.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    with suppress(FileExistsError, PermissionError):
        # Ours, even if the mount shows all files as another user's.
        return os.open(path, flags | os.O_EXCL, 0o644), True

    try:
        file = os.open(path, flags, 0o644)
    except PermissionError:
        if not path.exists():
            raise

        # Reading is enough to lock another user's file.
        return os.open(path, flags & ~(os.O_RDWR | os.O_CREAT)), False

    return file, os.fstat(file).st_uid == os.geteuid()


def _lock(file: int, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _log.warning("waiting for another download of %s", path.stem)
        fcntl.flock(file, fcntl.LOCK_EX)
