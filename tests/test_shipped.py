"""Files and pages that messages name exist at the given location."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memeval.datasets.registry import DATASETS
from memeval.text import shipped
from memeval.text.shipped import location_of, with_locations

ROOT = Path(__file__).parents[1]


def test_page_in_a_checkout_is_a_file_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert location_of("docs/glossary.md") == "docs/glossary.md"
    monkeypatch.chdir(tmp_path)
    assert location_of("docs/glossary.md") == str(ROOT / "docs" / "glossary.md")


def test_page_in_a_release_is_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "memeval" / "data" / "demo" / "own.json"
    own.parent.mkdir(parents=True)
    own.write_text("[]", encoding="utf-8")
    monkeypatch.setattr(shipped, "PLACES", (tmp_path / "memeval", tmp_path))
    address = location_of("docs/datasets/json.md")
    assert address.startswith("https://") and address.endswith("/docs/datasets/json.md")
    assert DATASETS["json"].how_to_get.endswith(f"dataset=json dataset.path={own}")
    assert f"the schema of {address};" in DATASETS["json"].how_to_get
    assert with_locations("dataset.path=data/demo/gone.json") == "dataset.path=data/demo/gone.json"


def test_every_page_named_in_data_set_hints_exists() -> None:
    for info in DATASETS.values():
        for name in re.findall(r"(?:docs|data/demo)/[\w/.]*\w", info.by_hand):
            assert (ROOT / name).is_file(), f"{info.name}: {name}"
