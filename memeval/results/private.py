"""Files with conversations: only their owner may read what is created here, regardless of the
umask.

Existing folders and files keep their permissions.
"""

import os
from pathlib import Path

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
