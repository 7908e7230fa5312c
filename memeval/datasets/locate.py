"""Where data sets lie, and how one is opened by name."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import memeval
from memeval.datasets.contract import Dataset, DatasetInfo
from memeval.datasets.registry import ADAPTERS, dataset_info
from memeval.errors import UserError, unknown

DATA_DIR = "MEMEVAL_DATA_DIR"


def data_dir(root: Path) -> Path:
    """The data folder: the environment's `MEMEVAL_DATA_DIR`, else `data/` below the project's root."""
    named = os.environ.get(DATA_DIR)
    return Path(named) if named else root / "data"


def locate(info: DatasetInfo, folder: Path) -> Path:
    """Where a data set's file is, or would be: below `folder`, or beside the package for a set that ships with it."""
    package = Path(memeval.__file__).parent
    places = [folder] if info.url else [folder, package / "data", package.parent / "data"]
    return next((place / info.file for place in places if (place / info.file).is_file()), folder / info.file)


def build(name: str, folder: Path, **settings: Any) -> Dataset:
    """The adapter of a data set, not yet opened. `settings` are those of the `dataset` group; `path` overrides where the file lies."""
    if name not in ADAPTERS:
        raise unknown("data set", name, ADAPTERS)
    info = dataset_info(name)
    module, _, attribute = ADAPTERS[name].partition(":")
    adapter: Callable[..., Dataset] = getattr(importlib.import_module(module), attribute)
    path = settings.pop("path", None) or locate(info, folder)
    return adapter(path=Path(path), info=info, **settings)


def read_file(info: DatasetInfo, path: Path) -> bytes:
    """The whole file. Raises `UserError` with the way to get it where it is missing, and with the reason where it can't be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise missing(info, path) from None
    except OSError as error:
        raise UserError(f"data set '{info.name}': {path} can't be read: {error.strerror}.") from error


def missing(info: DatasetInfo, path: Path) -> UserError:
    """The error for a file that is not there."""
    hints = [f"get it:      python -m memeval data fetch {info.name}"] if info.url else []
    return UserError(
        f"data set '{info.name}' is not on this machine: {path} is missing.", *hints, "or offline:  python -m memeval dataset=demo"
    )


def check_pin(info: DatasetInfo, path: Path, digest: str, *, allow_unpinned: bool) -> bool:
    """Whether the file is the registered one; True for a set without a pin. Raises `UserError` where it is not and that is not allowed."""
    if info.sha256 is None or digest == info.sha256:
        return True
    if allow_unpinned:
        return False
    known = info.variants.get(digest)
    what = f"is {known}" if known else f"is not the registered file: its sha256 is {digest[:8]}…, not {info.sha256[:8]}…"
    raise UserError(
        f"data set '{info.name}': {path} {what}.",
        f"the registered file:  move this one away, then python -m memeval data fetch {info.name}",
        "or use it as it is:   dataset.allow_unpinned=true (reports will say so)",
    )


def digest_of(content: bytes) -> str:
    """sha256 in hexadecimal."""
    return sha256(content).hexdigest()
