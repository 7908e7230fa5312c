"""Reads data sets that are a folder of files."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from memeval.datasets.contract import DatasetInfo
from memeval.datasets.locate import check_pin, digest_file, read_pinned


class FolderContent(Struct, frozen=True):
    """The requested files of a folder."""

    files: Mapping[str, bytes]
    """Content by name below the folder, in the requested order."""
    sha256: str
    """sha256 of all files together: of their names and hashes."""
    pinned: bool
    """Whether each is the registered file."""


def read_folder(
    info: DatasetInfo, folder: Path, names: Sequence[str], *, allow_unpinned: bool
) -> FolderContent:
    """Reads files of a data set's folder.

    Raises `UserError` if one is missing, can't be read, or is not the registered one.
    """
    contents, digests = {}, {}
    pinned = True
    for name in names:
        part = info.part_named(name)
        file = read_pinned(part, folder / name, allow_unpinned=allow_unpinned)
        contents[name], digests[name] = file.content, file.sha256
        pinned = pinned and file.pinned

    return FolderContent(files=contents, sha256=digest_of_files(digests), pinned=pinned)


def check_files(
    info: DatasetInfo, folder: Path, paths: Sequence[Path], *, allow_unpinned: bool
) -> tuple[dict[str, str], bool]:
    """The hashes of a folder's files by name, and whether every file is the registered one. No file
    is loaded as a whole.

    Raises `UserError` as `read_folder` does.
    """
    digests = {}
    pinned = True
    for path in paths:
        name = path.relative_to(folder).as_posix()
        digests[name] = digest_file(info, path)
        part = info.part_named(name)
        if not check_pin(part, path, digests[name], allow_unpinned=allow_unpinned):
            pinned = False

    return digests, pinned


def digest_of_files(digests: Mapping[str, str]) -> str:
    """sha256 of files' hashes and names together: some names carry information."""
    whole = sha256()
    for name, digest in digests.items():
        whole.update(f"{name}\0{digest}\n".encode())

    return whole.hexdigest()
