"""A partial download on disk: a file that only this download uses, even if others write to the
folder.
"""

import fcntl
import glob
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from io import FileIO
from pathlib import Path

from msgspec import Struct


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
    """The partial file of `target`: one that an earlier download left and nobody is writing, or a
    new one.

    Links are never followed and other users' files are never used, so that a prepared folder can't
    make a download overwrite another file. A part that is not discarded stays if the download
    breaks off, so that the next download can continue it.
    """
    part = next(_free_parts(target), None) or _create_part(target)
    try:
        yield part
    finally:
        if part.size() == 0:
            part.discard()

        os.close(part.file)


def _free_parts(target: Path) -> Iterator[PartFile]:
    """The largest part that earlier downloads left behind and that is free, if any.

    Anything that is not a plain file of this user is ignored.
    """
    names = sorted(target.parent.glob(f"{glob.escape(target.name)}*.part"), key=_size, reverse=True)
    for path in names:
        try:
            # Without O_NONBLOCK, a named pipe of that name would block forever.
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            continue

        if _is_ours(file, path):
            yield PartFile(path=path, target=target, file=file)
            return

        os.close(file)


def _is_ours(file: int, path: Path) -> bool:
    """Whether this is this user's plain file, with one name, not locked by another download."""
    # Through a second name, or as the owner, somebody else could change the file after the check.
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_uid != os.geteuid():
        return False

    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Meanwhile the file may have become the target, and the name another file's.
        named = path.stat(follow_symlinks=False)
        return (named.st_dev, named.st_ino) == (status.st_dev, status.st_ino)

    return False


def _create_part(target: Path) -> PartFile:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        path = target.with_name(f"{target.name}.{secrets.token_hex(8)}.part")
        file = os.open(path, flags, 0o644)
        # Another download may find the file before it is locked here, and think it was left behind.
        if _is_ours(file, path):
            return PartFile(path=path, target=target, file=file)

        os.close(file)


def _size(path: Path) -> int:
    try:
        return path.stat(follow_symlinks=False).st_size
    except OSError:
        return 0
