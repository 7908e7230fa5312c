"""The home of a run folder, and the record of its runs' locations in MLflow."""

import json
import os
import re
from pathlib import Path
from tempfile import mkstemp
from uuid import uuid4

from filelock import FileLock

from memeval.results import TRACKED_FILE, read_tracked, write_atomically
from memeval.tracking.store import LOCK_WAIT_S, TrackingStore

HOME_FILE = ".home-id"

HOME_ID = re.compile(r"[0-9a-f]{32}")


def record_tracked(folder: Path, store: TrackingStore, run_id: str) -> None:
    """Records in the folder the store to which it was logged."""
    known = read_tracked(folder)
    if known.get(store.name) == run_id:
        return

    text = json.dumps({**known, store.name: run_id}, indent=1)
    write_atomically(folder / TRACKED_FILE, text + "\n")


def home_id(folder: Path) -> str:
    """The random id of the home that a run folder belongs to.

    In a shared store it distinguishes the runs of different homes. Its file is two levels above the
    run folder, and also contains its own inode number, so a copy of a home counts as another home.
    """
    file = folder.resolve().parent.parent / HOME_FILE
    return read_home_id(file) or make_home_id(file)


def read_home_id(file: Path) -> str | None:
    """The id in a home's file; None if the file is missing or a copy."""
    try:
        with file.open(encoding="utf-8") as opened:
            content = json.load(opened)
            # Of the open file: by now, its name may belong to another file.
            inode = os.fstat(opened.fileno()).st_ino
    except (OSError, ValueError, RecursionError):
        return None

    if not isinstance(content, dict) or content.get("inode") != inode:
        return None

    known = content.get("id")
    if isinstance(known, str) and HOME_ID.fullmatch(known):
        return known

    return None


def make_home_id(file: Path) -> str:
    """Writes and returns a new id. If several processes do so at the same time, the first id stays.

    Raises `OSError` if the disk can't be written.
    """
    with FileLock(file.with_name(f"{file.name}.lock"), timeout=LOCK_WAIT_S):
        known = read_home_id(file)
        if known:
            return known

        new_id = uuid4().hex
        descriptor, name = mkstemp(prefix=f"{file.name}.", dir=file.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as written:
                json.dump({"id": new_id, "inode": os.fstat(descriptor).st_ino}, written)

            # A rename keeps the inode that the file names.
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

        return new_id
