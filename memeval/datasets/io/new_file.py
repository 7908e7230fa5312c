"""Writes a file that appears under its name only when it is complete."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from memeval.errors import UserError
from memeval.results.files import folder_beside
from memeval.results.private import open_private


@contextmanager
def new_file(path: Path) -> Iterator[IO[str]]:
    """A new file that only its owner can read. It appears under its name only when it is complete.

    Raises `UserError` if the file exists already, or can't be written.
    """
    if path.exists():
        raise UserError(f"{path} already exists.", "move it away, or name another file")

    try:
        with folder_beside(path) as folder:
            temporary = Path(folder, path.name)
            # Only its owner should be able to read an export of someone's chats.
            with open(temporary, "w", encoding="utf-8", opener=open_private) as file:
                yield file

            temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror or error}.") from error
