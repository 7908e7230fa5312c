"""Reads data sets that are a folder of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from memeval.datasets.contract import DatasetInfo, FileInfo
from memeval.datasets.io.parts import part_info
from memeval.datasets.locate import check_pin, digest_of, read_file


@dataclass(frozen=True)
class FolderContent:
    """The files of a folder that were asked for."""

    files: Mapping[str, bytes]
    """Content by name below the folder, in the order in which they were asked for."""
    sha256: str
    """Of all of them together: of their names and hashes."""
    pinned: bool
    """Whether each is the registered file."""


def read_folder(
    info: DatasetInfo, folder: Path, names: Sequence[str], *, allow_unpinned: bool
) -> FolderContent:
    """Reads files of a data set's folder.

    Raises `UserError` if one is missing, can't be read, or is not the registered one.
    """
    registered: Mapping[str, FileInfo] = {file.name: file for file in info.files}
    files, whole, pinned = {}, sha256(), True
    for name in names:
        part = part_info(info, registered[name]) if name in registered else info
        files[name] = read_file(part, folder / name)
        digest = digest_of(files[name])
        whole.update(f"{name}\0{digest}\n".encode())
        # The check comes first, because it raises for a file that is not allowed.
        pinned = check_pin(part, folder / name, digest, allow_unpinned=allow_unpinned) and pinned

    return FolderContent(files=files, sha256=whole.hexdigest(), pinned=pinned)
