"""Files with conversations: only their owner may read what is created here, regardless of the
umask.

Existing folders and files keep their permissions.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from memeval.errors import UserError
from memeval.results.files import folder_beside

FILE_MODE, FOLDER_MODE = 0o600, 0o700


def make_folder(folder: Path) -> Path:
    """Creates a folder and its missing parents, accessible only to the owner.

    Raises `OSError` as `mkdir` does.
    """
    # With `mkdir(parents=True)`, the mode of the parents would depend on the umask.
    missing = []
    for path in (folder, *folder.parents):
        if path.exists():
            break

        missing.append(path)

    for path in reversed(missing):
        path.mkdir(mode=FOLDER_MODE, exist_ok=True)

    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)  # raises if a file has that name

    return folder


def open_private(path: Path | str, flags: int) -> int:
    """A descriptor of a file, as `os.open` returns it: an opener for `open`.

    Only the owner may read a file that it creates.
    """
    return os.open(path, flags, FILE_MODE)


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
