from __future__ import annotations

import re
from pathlib import Path

import pytest
from locomo_samples import sample, write

from memeval.config.options import built_in_classes
from memeval.config.paths import data_dir
from memeval.datasets.contract import Dataset
from memeval.datasets.locate import build, locate
from memeval.datasets.registry import DATASETS, dataset_info
from memeval.errors import UserError

DEMO = DATASETS["demo"]
LOCOMO = DATASETS["locomo"]


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match=r"unknown data set 'locmo'\. Did you mean: locomo"):
        dataset_info("locmo")
    with pytest.raises(
        UserError,
        match=(r"unknown data set 'locomo_audit'\. Did you mean: locomo, locomo_mc10"),
    ):
        build("locomo_audit", Path("x"))


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_registry_entry_is_complete(name: str) -> None:
    info = DATASETS[name]
    assert info.name == name
    parts = Path(info.file).parts
    assert not Path(info.file).is_absolute() and len(parts) == (
        2 if not info.files and parts else len(parts[:2])
    )
    assert parts or info.url is None, "what is generated is not fetched"
    assert info.title and info.licence and info.citation
    if info.url is not None:
        assert info.url.startswith("https://")
        assert (info.sha256 is None) == (info.size_bytes is None), "both are known, or neither is"
        assert all(file.size_bytes for file in info.files)
    known = [
        info.sha256,
        *(file.sha256 for file in info.files),
        *(excerpt.sha256 for excerpt in info.excerpts),
    ]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in known if digest is not None)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in info.variants)


@pytest.mark.parametrize("name", sorted(built_in_classes("dataset")))
def test_every_adapter_can_be_built(name: str, tmp_path: Path) -> None:
    dataset = build(name, tmp_path)
    assert isinstance(dataset, Dataset)
    assert dataset.info is DATASETS[name]
    assert not dataset.category_names or set(dataset.headline or ()) <= set(dataset.category_names)


def test_data_folder_comes_from_the_environment_or_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MEMEVAL_DATA_DIR", raising=False)
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    assert data_dir() == tmp_path / "data"
    monkeypatch.setenv("MEMEVAL_DATA_DIR", "/elsewhere")
    assert data_dir() == Path("/elsewhere")


def test_demo_set_is_found_without_a_data_folder(tmp_path: Path) -> None:
    assert locate(LOCOMO, tmp_path) == tmp_path / "locomo/locomo10.json"
    assert locate(DEMO, tmp_path).is_file()
    own = tmp_path / "demo/demo.json"
    own.parent.mkdir()
    own.write_text("[]", encoding="utf-8")
    assert locate(DEMO, tmp_path) == own


def test_demo_set_is_pinned_and_has_questions(tmp_path: Path) -> None:
    dataset = build("demo", tmp_path)
    opened = dataset.open()
    assert opened.pinned
    cases = list(dataset.cases())
    assert cases and all(case.questions and case.sessions for case in cases)
    assert {question.category for case in cases for question in case.questions} <= set(
        dataset.category_names
    )


def test_a_path_and_settings_reach_the_adapter(tmp_path: Path) -> None:
    path = write(tmp_path, [sample()])
    dataset = build("locomo", tmp_path, path=str(path), allow_unpinned=True, categories=(4,))
    assert [question.question_id for case in dataset.cases() for question in case.questions] == [
        "conv-1/q0"
    ]
