"""Writes a file that appears under its name once it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from memeval.errors import UserError
from memeval.results.private import open_private


@contextmanager
def new_file(path: Path) -> Iterator[IO[str]]:
    """A file to write, for its owner alone, which appears under its name once it is whole.

    Raises `UserError` if one is there already, or it can't be written.
    """
    if path.exists():
        raise UserError(f"{path} already exists.", "move it away, or name another file")

    # Beside the target: a rename works only within a file system.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # An export of someone's chats is for its owner alone.
        descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yield file

        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink()
