"""Paths of the project."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memeval.errors import DISK_ERRORS, UserError, WorldError
from memeval.process.root import PACKAGE, project_root
from memeval.text.shown import one_line


def conf_dir() -> Path:
    """The Hydra groups, in the package of a wheel or in the checkout."""
    inside = PACKAGE / "conf"
    return inside if inside.is_dir() else PACKAGE.parent / "conf"


def sweeps_dir() -> Path:
    inside = PACKAGE / "conf" / "sweep"
    return inside if inside.is_dir() else PACKAGE.parent / "sweeps"


def data_dir() -> Path:
    """Folder of data sets: MEMEVAL_DATA_DIR, else data/ of the project."""
    named = os.environ.get("MEMEVAL_DATA_DIR")
    return Path(named).expanduser().resolve() if named else project_root() / "data"


def cache_dir() -> Path:
    """Model replies and embeddings, shared by all cells and processes."""
    return project_root() / "data" / "cache"


def prepared_dir() -> Path:
    """Saved memories."""
    return project_root() / "data" / "prepared"


def outputs_dir() -> Path:
    """Records, reports, tables."""
    return project_root() / "outputs"


@contextmanager
def refusing_paths() -> Iterator[None]:
    """Raises `UserError` for a path that the user chose, if it is too long or belongs to others,
    and `WorldError` for a file on a disk that is full or broken.
    """
    try:
        yield
    except OSError as error:
        if error.errno in DISK_ERRORS and error.filename:
            raise WorldError(f"{one_line(error.filename)}: {error.strerror}") from error
        if error.errno == errno.EACCES and error.filename:
            hint = "is it another user's? for a home of your own, set MEMEVAL_HOME"
            raise UserError(f"{one_line(error.filename)}: {error.strerror}", hint) from error
        if error.errno != errno.ENAMETOOLONG:
            raise

        name = max(Path(os.fsdecode(error.filename or "a name")).parts, key=len)
        raise UserError(f"too long for a file name: {one_line(name, 60)}") from error
