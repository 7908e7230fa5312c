"""Files with conversations: only their owner may read what is created here, regardless of the
umask.

Folders and files that are there already keep the permissions that their owner gave them.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE, FOLDER_MODE = 0o600, 0o700


def make_folder(folder: Path) -> Path:
    """Creates a folder, and those above it that are missing, only for its owner.

    Raises `OSError` as `mkdir` does.
    """
    # `mkdir(parents=True)` would give the parents the mode that the umask leaves.
    missing = []
    for path in (folder, *folder.parents):
        if path.exists():
            break

        missing.append(path)

    for path in reversed(missing):
        path.mkdir(mode=FOLDER_MODE, exist_ok=True)

    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)  # raises if a file has that name

    return folder


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a file, as `os.open` returns it.

    A file that it creates is only for its owner.
    """
    return os.open(path, flags, FILE_MODE)
