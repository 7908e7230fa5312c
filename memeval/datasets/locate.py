"""Finds data sets by name, and checks their files."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import memeval
from memeval.config.settings import read_settings
from memeval.datasets.contract import Dataset, DatasetInfo, DatasetSettings, Excerpt
from memeval.datasets.registry import adapter_class, info_of
from memeval.errors import UserError


def locate(info: DatasetInfo, folder: Path) -> Path:
    """Where a data set's file (or folder) is, or would be: below `folder`, or beside the package
    for a set that ships with it.

    If the whole is not there but a registered excerpt is, the excerpt is used.
    """
    package = Path(memeval.__file__).parent
    # A set with an address never ships with memeval: it is only looked for in the data folder.
    parents = (
        [folder] if info.url or info.files else [folder, package / "data", package.parent / "data"]
    )
    candidates = [
        *(parent / info.file for parent in parents),
        *(folder / excerpt.file for excerpt in info.excerpts),
    ]
    return next((path for path in candidates if path.exists()), folder / info.file)


def build(name: str, folder: Path, **given: Any) -> Dataset:
    """The adapter of a data set, not yet opened.

    `given` are settings of the group `dataset`: `path` says where the file is, and `class` names an
    adapter that is not memeval's own. Raises `UserError` for a setting that the data set does not
    have, and for an invalid value.
    """
    adapter = adapter_class(name, given.get("class"))
    info = info_of(name, adapter)
    settings: DatasetSettings = read_settings(adapter.settings_type, given, "dataset")
    return adapter(Path(settings.path) if settings.path else locate(info, folder), info, settings)


def read_file(info: DatasetInfo, path: Path) -> bytes:
    """The whole file.

    Raises `UserError` with the way to get it where it is missing, and with the reason where it
    can't be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise missing(info, path) from None
    except OSError as error:
        raise UserError(
            f"data set '{info.name}': {path} can't be read: {error.strerror}."
        ) from error


def missing(info: DatasetInfo, path: Path) -> UserError:
    """The error for a file that is not there."""
    hints = []
    if info.url or any(file.url for file in info.files):
        hints.append(f"get it:      python -m memeval data fetch {info.name}")
    elif info.by_hand:
        hints.append(info.by_hand)

    return UserError(
        f"data set '{info.name}' is not on this machine: {path} is missing.",
        *hints,
        "or offline:  python -m memeval dataset=demo",
    )


def check_pin(info: DatasetInfo, path: Path, digest: str, *, allow_unpinned: bool) -> bool:
    """Whether the file is the registered one or a registered excerpt of it, or the one that ships
    with memeval.

    A file for which no sha256 is registered is accepted, but never counts as pinned. Raises
    `UserError` for another file than the registered one, where that is not allowed.
    """
    if digest == info.sha256 or excerpt_of(info, digest):
        return True
    if info.sha256 is None:
        return digest == shipped_digest(info, path)
    if allow_unpinned:
        return False

    known = info.variants.get(digest)
    what = (
        f"is {known}"
        if known
        else f"is not the registered file: its sha256 is {digest[:8]}…, not {info.sha256[:8]}…"
    )
    raise UserError(
        f"data set '{info.name}': {path} {what}.",
        f"the registered file:  move this one away, then python -m memeval data fetch {info.name}",
        "or use it as it is:   dataset.allow_unpinned=true (reports will say so)",
    )


def shipped_digest(info: DatasetInfo, path: Path) -> str | None:
    """sha256 of the file of this data set that ships with memeval; None if none does."""
    if info.url or info.files or info.by_hand or not info.file:
        return None

    package = Path(memeval.__file__).parent
    places = [place / info.file for place in (package / "data", package.parent / "data")]
    inside = [
        file
        for place in places
        if place.is_dir()
        for file in sorted(place.rglob("*"))
        if file.name == path.name
    ]
    shipped = next((file for file in (*places, *inside) if file.is_file()), None)
    return digest_of(shipped.read_bytes()) if shipped else None


def excerpt_of(info: DatasetInfo, digest: str) -> Excerpt | None:
    """The registered excerpt that has this sha256, if any."""
    return next((excerpt for excerpt in info.excerpts if excerpt.sha256 == digest), None)


def excerpt_notes(info: DatasetInfo, digest: str) -> tuple[str, ...]:
    """What a report must say of a file that is an excerpt; nothing for a whole one."""
    excerpt = excerpt_of(info, digest)
    return (
        (f"an excerpt: {excerpt.what}; its figures are not those of the whole {info.name}",)
        if excerpt
        else ()
    )


def digest_of(content: bytes) -> str:
    """sha256 in hexadecimal."""
    return sha256(content).hexdigest()
