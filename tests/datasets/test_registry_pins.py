"""A data set has a registered hash or is unpinned: no registry entry is pinned without one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memeval.datasets.contract import DatasetInfo
from memeval.datasets.locate import build, check_pin, shipped_digest
from memeval.datasets.registry import DATASETS

SHA256 = re.compile("[0-9a-f]{64}")
BLOB = re.compile("[0-9a-f]{40}")
OTHER = "0" * 64
"""The digest of an unregistered file."""


def pinned(info: DatasetInfo, path: Path) -> bool:
    return check_pin(info, path, OTHER, allow_unpinned=True)


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_a_file_without_a_registered_digest_is_never_pinned(name: str, tmp_path: Path) -> None:
    info = DATASETS[name]
    path = tmp_path / (info.file or "generated")

    assert not pinned(info, path)
    assert info.sha256 is None or SHA256.fullmatch(info.sha256)
    for file in info.files:
        known = (
            SHA256.fullmatch(file.sha256) if file.sha256 else BLOB.fullmatch(file.git_blob or "")
        )
        assert known, f"{file.name} of {name}"
        assert not pinned(info.part(file), path / file.name)


def is_single_file_without_digest(info: DatasetInfo) -> bool:
    has_digest = info.sha256 or info.files or info.by_hand
    return not has_digest and bool(Path(info.file).suffix)


@pytest.mark.parametrize(
    "name", sorted(name for name in DATASETS if is_single_file_without_digest(DATASETS[name]))
)
def test_only_shipped_sets_are_pinned_without_a_digest(name: str) -> None:
    info = DATASETS[name]
    shipped = shipped_digest(info)
    assert (shipped is None) == (info.url is not None)


@pytest.mark.parametrize("name", [name for name in DATASETS if name.startswith("demo")])
def test_demonstration_is_the_file_that_ships(name: str, tmp_path: Path) -> None:
    assert build(name, tmp_path).open().pinned
