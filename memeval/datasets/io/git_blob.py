"""git's hash of a file: it pins the files of a repository that states no other hash."""

from __future__ import annotations

from hashlib import file_digest, sha1
from io import SEEK_END, FileIO
from pathlib import Path


def git_blob(file: Path | int) -> str:
    """The hash of a file, or of an open descriptor, as a blob, in hexadecimal."""
    with FileIO(file, closefd=isinstance(file, Path)) as content:
        size = content.seek(0, SEEK_END)
        content.seek(0)
        # Not for security: a git hash only says that a file is the one of the commit.
        empty = sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        return file_digest(content, lambda: empty).hexdigest()
