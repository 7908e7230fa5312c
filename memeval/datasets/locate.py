"""Finds data sets by name, and checks their files."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import SEEK_END, FileIO
from mmap import mmap
from pathlib import Path
from typing import Any

from msgspec import Struct

from memeval.config.settings import read_settings
from memeval.datasets.contract import Dataset, DatasetInfo, DatasetSettings, Excerpt, FileInfo
from memeval.datasets.registry import adapter_class, info_of
from memeval.errors import UserError
from memeval.results.files import file_digest
from memeval.text.shipped import PLACES

_SHIPPED = tuple(place / "data" for place in PLACES)
"""Folders of the files that ship with memeval: in a release, and in a checkout."""
FROZEN = "own"
"""Folder of the frozen data sets, below the data folder."""


class PinnedFile(Struct, frozen=True):
    """A file that was compared with the registered one."""

    content: bytes
    sha256: str
    pinned: bool
    """Whether it is the registered one."""


def locate(info: DatasetInfo, folder: Path) -> Path:
    """Path of a data set's file (or folder), whether or not it exists: below `folder`, or next to
    the package for a set that ships with it.

    If the whole set is missing but a registered excerpt exists, the excerpt is used.
    """
    candidates = [folder / info.file]
    # A set with a URL never ships with memeval: it is only looked for in the data folder.
    if not info.url and not info.files:
        candidates += [parent / info.file for parent in _SHIPPED]

    candidates += [folder / excerpt.file for excerpt in info.excerpts]
    for path in candidates:
        if path.exists():
            return path

    return candidates[0]


def build(name: str, folder: Path, **given: Any) -> Dataset:
    """The adapter of a data set, not yet opened.

    `given` are settings of the group `dataset`: `path` is the file's path, and `class` names a
    custom adapter. Raises `UserError` for a setting that the data set does not have, and for an
    invalid value.
    """
    adapter = adapter_class(name, given.get("class"))
    info = info_of(name, adapter)
    settings: DatasetSettings = read_settings(adapter.settings_type, given, "dataset")
    if not settings.path:
        return adapter(locate(info, folder), info, settings)

    path, named = Path(settings.path), folder / FROZEN / settings.path
    # A frozen data set can also be given by its name.
    if named.is_dir() and not path.exists():
        path = named

    return adapter(path, info, settings)


def read_file(info: DatasetInfo, path: Path) -> bytes:
    """The content of a file.

    Raises `UserError` with the way to get the file if it is missing, and with the reason if it
    can't be read.
    """
    with _reading(info, path):
        return path.read_bytes()


def digest_file(info: DatasetInfo, path: Path) -> str:
    """sha256 of a file in hexadecimal, read in blocks. Raises `UserError` as `read_file` does."""
    with _reading(info, path):
        return file_digest(path)


@contextmanager
def _reading(info: DatasetInfo, path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise missing(info, path) from None
    except OSError as error:
        raise UserError(
            f"data set '{info.name}': {path} can't be read: {error.strerror}."
        ) from error


def read_pinned(info: DatasetInfo, path: Path, *, allow_unpinned: bool) -> PinnedFile:
    """The whole file, compared with the registered one.

    Raises `UserError` if it is missing, can't be read, or must not be used (see `check_pin`).
    """
    content = read_file(info, path)
    digest = digest_of(content)
    pinned = check_pin(info, path, digest, allow_unpinned=allow_unpinned)
    return PinnedFile(content=content, sha256=digest, pinned=pinned)


def missing(info: DatasetInfo, path: Path) -> UserError:
    if path.exists():
        return UserError(f"data set '{info.name}': {path} is not a file")

    hints = []
    offline = "or offline:  python -m memeval dataset=demo"
    if info.url or any(file.url for file in info.files):
        hints = [f"get it:      python -m memeval data fetch {info.name}", offline]
    elif info.by_hand:
        hints = [info.how_to_get, offline]
    # One that ships, or is generated, is only missing if the user names another file.
    if not hints or Path(info.file).name not in path.parts:
        hints.append("name another file, or leave dataset.path out")

    return UserError(f"data set '{info.name}' is not on this machine: {path} is missing.", *hints)


def check_pin(info: DatasetInfo, path: Path, digest: str, *, allow_unpinned: bool) -> bool:
    """Whether the file is the registered one, a registered excerpt of it, or the one that ships
    with memeval.

    A file for which no sha256 is registered is accepted, but never counts as pinned. Raises
    `UserError` for a file other than the registered one, unless `allow_unpinned` is set.
    """
    if digest == info.sha256 or excerpt_of(info, digest):
        return True
    if info.sha256 is None:
        return digest == shipped_digest(info)
    if allow_unpinned:
        return False

    problem = f"is not the registered file: its sha256 is {digest[:8]}…, not {info.sha256[:8]}…"
    if digest in info.variants:
        problem = f"is {info.variants[digest]}"

    raise UserError(
        f"data set '{info.name}': {path} {problem}.",
        f"the registered file:  move this one away, then python -m memeval data fetch {info.name}",
        "or use this file anyway:   dataset.allow_unpinned=true (reports will say so)",
    )


def shipped_digest(info: DatasetInfo) -> str | None:
    """sha256 of the file of this data set that ships with memeval; None if none does."""
    if info.url or info.files or info.by_hand or not info.file:
        return None

    for parent in _SHIPPED:
        if (parent / info.file).is_file():
            return file_digest(parent / info.file)

    return None


def excerpt_of(info: DatasetInfo, digest: str) -> Excerpt | None:
    """The registered excerpt that has this sha256, if any."""
    return next((excerpt for excerpt in info.excerpts if excerpt.sha256 == digest), None)


def excerpt_notes(info: DatasetInfo, digest: str) -> tuple[str, ...]:
    """Notes for a report if a file is an excerpt; empty for a whole file."""
    excerpt = excerpt_of(info, digest)
    if excerpt is None:
        return ()

    return (f"an excerpt: {excerpt.what}; its figures are not those of the whole {info.name}",)


def digest_of(content: bytes | mmap) -> str:
    """sha256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def is_registered(info: DatasetInfo | FileInfo, path: Path, digest: str | None = None) -> bool:
    """Whether a file has the registered sha256, or the registered git blob if no sha256 is
    registered. `digest` is the file's sha256, if it is known.
    """
    if info.sha256 is not None:
        return (digest or file_digest(path)) == info.sha256

    return info.git_blob is not None and git_blob(path) == info.git_blob


def git_blob(file: Path | int) -> str:
    """git's blob hash of a file or an open descriptor, in hexadecimal: it pins the files of a
    repository that publishes no other hash.
    """
    with FileIO(file, closefd=isinstance(file, Path)) as content:
        size = content.seek(0, SEEK_END)
        content.seek(0)
        # Not for security: a git hash only identifies the file of a commit.
        empty = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        return hashlib.file_digest(content, lambda: empty).hexdigest()
