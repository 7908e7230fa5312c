"""A data set has a registered hash or is unpinned: no registry entry is pinned without one."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import msgspec
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


@pytest.mark.parametrize(
    ("name", "given", "digest"),
    [
        ("alert_storm", {}, "c9bdb884de1c1df6"),
        ("alert_storm", {"topology": "spine_leaf"}, "6760b968c9866fc3"),
        ("alert_storm", {"topology": "random", "storms_per_case": 2}, "b662c955626259f9"),
        ("demo", {}, "e256d3fd7799f541"),
        ("demo_beam", {}, "ca4958d032bd84ff"),
        ("demo_convomem", {}, "836d3ab15e7c310b"),
        ("demo_incidents", {"runbooks": True, "questions_per_case": 500}, "97447767367bdba6"),
        ("demo_locomo_mc10", {"choice_order": "shuffled"}, "895e3134ab6b37d9"),
        ("demo_longmemeval", {"canaries": 2}, "9207ffcd535975d8"),
        ("demo_memory_agent_bench", {}, "526138a5e484b942"),
        ("demo_netops", {}, "e72b10f5475568f4"),
        ("demo_opseval", {"framing": "closed_book"}, "4fe4b94c09b48c63"),
        ("demo_opseval", {"framing": "knowledge"}, "d10ba9ebc0a4c51c"),
        ("demo_opseval", {"framing": "runbook", "canaries": 1}, "cab3f61d5c6d2cb5"),
        ("demo_personamem", {}, "eb9591e80b194b61"),
        ("synthetic", {}, "e38b14d682ba891b"),
    ],
)
def test_cases_that_need_no_download_are_unchanged(
    name: str, given: dict[str, object], digest: str, tmp_path: Path
) -> None:
    """A changed word or order would change the prompts, but not the name of the data."""
    cases = list(build(name, tmp_path, **given).cases())
    assert sha256(msgspec.json.encode(cases, order="deterministic")).hexdigest()[:16] == digest


@pytest.mark.parametrize(
    ("name", "given", "digest"),
    [
        ("synthetic", {}, "418e6cd1fc09eebc"),
        ("lifecycle", {}, "6ff49c2b1691f690"),
        ("alert_storm", {}, "fc1b872e4075afcc"),
        ("alert_storm", {"storms_per_case": 2}, "56e2d71ef73f6da4"),
    ],
)
def test_generated_data_keep_their_digest(name: str, given: dict[str, int], digest: str) -> None:
    """The keys of stored results contain it: it changes only with the generator's version."""
    assert build(name, Path("/"), **given).open().sha256[:16] == digest
