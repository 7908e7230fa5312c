"""Reads data sets that are a folder of files."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from memeval.datasets.contract import Dataset
from memeval.datasets.locate import check_pin, digest_file


def check_files(dataset: Dataset, paths: Sequence[Path]) -> tuple[dict[str, str], bool]:
    """The hashes of a data set's files by name, and whether every file is the registered one. No
    file is loaded as a whole.

    Raises `UserError` if one is missing, can't be read, or is not the registered one.
    """
    info, folder = dataset.info, dataset.path
    # The user may name one of the folder's files.
    if folder.is_file():
        folder = folder.parent

    allow_unpinned = dataset.settings.allow_unpinned
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
