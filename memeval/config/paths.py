"""Paths of the project."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memeval.errors import UserError
from memeval.text.shown import one_line

_PACKAGE = Path(__file__).resolve().parent.parent


def project_root() -> Path:
    """The folder of data/ and outputs/: MEMEVAL_HOME, or the checkout or current folder."""
    home = os.environ.get("MEMEVAL_HOME")
    if home:
        return Path(home).resolve()

    checkout = _PACKAGE.parent
    return checkout if (checkout / "conf" / "config.yaml").is_file() else Path.cwd()


def conf_dir() -> Path:
    """The Hydra groups, in the package of a wheel or in the checkout."""
    inside = _PACKAGE / "conf"
    return inside if inside.is_dir() else _PACKAGE.parent / "conf"


def sweeps_dir() -> Path:
    inside = _PACKAGE / "conf" / "sweep"
    return inside if inside.is_dir() else _PACKAGE.parent / "sweeps"


def data_dir() -> Path:
    """Folder of data sets: MEMEVAL_DATA_DIR, else data/ of the project."""
    named = os.environ.get("MEMEVAL_DATA_DIR")
    return Path(named).resolve() if named else project_root() / "data"


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
def refusing_long_names() -> Iterator[None]:
    """Raises `UserError` if the name of a file or folder is too long, because a user chose it."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise

        name = max(Path(os.fsdecode(error.filename or "a name")).parts, key=len)
        raise UserError(f"too long for a file name: {one_line(name, 60)}") from error
