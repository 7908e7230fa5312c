"""git's hash of a file: it pins the files of a repository that states no other hash."""

from __future__ import annotations

from hashlib import sha1
from pathlib import Path
from typing import Protocol

BLOCK = 1 << 18


class Hash(Protocol):
    """A hash that grows block by block."""

    def update(self, block: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


def blob_hash(size: int) -> Hash:
    """The hash of a blob of `size` bytes, before its content."""
    # Not for security: a git hash only says that a file is the one of the commit.
    return sha1(f"blob {size}\0".encode(), usedforsecurity=False)


def git_blob(path: Path) -> str:
    """The hash of a file's content as a blob, in hexadecimal, read in blocks."""
    digest = blob_hash(path.stat().st_size)
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)

    return digest.hexdigest()
