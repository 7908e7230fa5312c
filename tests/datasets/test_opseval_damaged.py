"""Errors in an OpsEval file are reported by file, record and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opseval_samples import ROWS, five_g, opseval, oracle, wired, write

from memeval.datasets.locate import build
from memeval.datasets.opseval.schema import FILES
from memeval.errors import UserError


def failure(folder: Path, **rows: Any) -> str:
    dataset = opseval(write(folder, **rows))
    with pytest.raises(UserError) as caught:
        dataset.open()
        list(dataset.cases())
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "is not JSON"),
        (json.dumps([wired()])[:-3], "is it cut off?"),
        (json.dumps([wired()]).encode("utf-16"), "is not UTF-8 text"),
        ({}, "contains an object, not a list of questions"),
        ([], "contains no questions"),
        ([1], "record 0 is an integer, not an object"),
        ([wired(), wired()], "record 1: field 'id' is 'Wired Network-0', which occurs twice"),
        ([wired(type=2)], "record 0: field 'type' is 2, not 0 (one is right) or 1 (several are)"),
        ([wired(type=True)], "record 0: field 'type' is a boolean, not an integer"),
        ([wired(choices="x")], "record 0: field 'choices' is a string, not a list"),
        (
            [wired(choices=["x"])],
            "record 0: field 'choices' must be empty or a list of 2 to 26 strings",
        ),
        (
            [wired(choices=["x", " "])],
            "record 0: field 'choices' must be empty or a list of 2 to 26 strings",
        ),
        ([wired(topic="x")], "record 0: field 'topic' is a string, not a list"),
        ([wired(answer="")], "record 0: field 'answer' is empty"),
        ([wired(answer=None)], "record 0: field 'answer' is null"),
        ([wired(question=5)], "record 0: field 'question' is an integer, not a string"),
        ([wired(question=" ")], "record 0: field 'question' is empty"),
    ],
)
def test_damaged_file_is_refused_with_its_reason(
    tmp_path: Path, content: Any, expected: str
) -> None:
    message = failure(tmp_path, wired_network=content)
    assert expected in message and "Wired Network.json" in message


@pytest.mark.parametrize(
    ("domain", "field"),
    [
        (domain, field)
        for domain, row in ROWS.items()
        for field in row()
        if (domain, field) != ("oracle_database", "solution")
    ],
)
def test_a_missing_field_is_named(tmp_path: Path, domain: str, field: str) -> None:
    row = {name: value for name, value in ROWS[domain]().items() if name != field}
    message = failure(tmp_path, **{domain.replace("5g_", "g5_"): [row]})
    assert f"{FILES[domain]}: record 0: field '{field}' is missing" in message


def test_an_id_in_two_files_is_refused(tmp_path: Path) -> None:
    assert "id 'Wired Network-0' occurs in 2 files" in failure(
        tmp_path, g5_communication=[five_g(id="Wired Network-0")]
    )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (write(tmp_path) / "test/Oracle Database.json").unlink()
    with pytest.raises(UserError, match=r"Oracle Database.json is missing"):
        opseval(tmp_path).open()
    with pytest.raises(UserError, match=r"dev/Wired Network.json is missing"):
        opseval(tmp_path, split="dev").open()
    with pytest.raises(UserError) as caught:
        build("opseval", tmp_path).open()
    assert "get it:      python -m memeval data fetch opseval" in caught.value.hints


def test_unregistered_files_are_refused_unless_allow_unpinned(tmp_path: Path) -> None:
    write(tmp_path / "opseval", oracle_database=[oracle()])
    with pytest.raises(UserError, match=r"Wired Network.json is not the registered file"):
        build("opseval", tmp_path).open()
    assert not build("opseval", tmp_path, allow_unpinned=True).open().pinned


def test_folds_and_limit_cases_below_their_minimum_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"dataset.folds must be at least 2, not 1"):
        opseval(tmp_path, folds=1)
    with pytest.raises(UserError, match=r"dataset.limit_cases must be at least 1"):
        opseval(tmp_path, limit_cases=0)
