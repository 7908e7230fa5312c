"""Values sent to MLflow respect its limits and rules for names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name, _validate_param_name
from sample_runs import summary, write_folder

from memeval.tracking import payload

DOCUMENTED = Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`([a-z0-9_/]+)`", DOCUMENTED.read_text(encoding="utf-8"))))
)
def test_documented_metric_names_are_logged_as_they_are(name: str) -> None:
    assert payload.legal_name(name) == name
    _validate_metric_name(name)


def test_metric_names_of_the_sample_run_are_legal_and_unchanged() -> None:
    cell = summary(repeats=3)
    assert set(payload.metrics(cell.metrics)) == {
        name for name, value in cell.metrics.items() if value is not None
    }
    for name in cell.metrics:
        _validate_metric_name(name)


@given(st.text(max_size=300))
def test_any_name_becomes_a_legal_one(name: str) -> None:
    _validate_metric_name(payload.legal_name(name))
    _validate_param_name(payload.legal_name(name))


def test_unmeasured_and_infinite_metrics_are_left_out() -> None:
    assert payload.metrics({"a": None, "b": float("nan"), "c": float("inf"), "d": 0, "e": 0.5}) == {
        "d": 0.0,
        "e": 0.5,
    }


def test_params_read_as_in_yaml_and_long_ones_are_cut_with_a_mark() -> None:
    cell = summary(params={"a": None, "b": True, "c": 10, "long": "x" * 9000, "just": "y" * 6000})
    written = payload.params(cell)
    assert (written["a"], written["b"], written["c"]) == ("null", "true", "10")
    assert len(written["long"]) == 6000 and written["long"].endswith("… (cut)")
    assert written["just"] == "y" * 6000


def test_tags_are_prefixed_and_the_description_has_no_pictures() -> None:
    tags = payload.tags(summary(), "# run\n\n![plot](plots/a.png)\n\ntext\n")
    assert tags["memeval.protocol"] == "locomo-keyword-v1"
    assert tags["memeval.valid"] == "true"
    assert tags["mlflow.source.git.commit"] == "0fec11d"
    assert "plots" not in tags["mlflow.note.content"] and "text" in tags["mlflow.note.content"]


def test_a_long_description_is_cut_at_a_line() -> None:
    note = payload.note("\n".join(f"line {index}" for index in range(2000)))
    assert len(note) <= 8000
    assert note.endswith("*Cut here: the whole report is among the artifacts.*")
    assert re.search(r"line \d+\n\n\*Cut", note)


def test_fingerprint_ignores_sweep_command_and_times() -> None:
    cell = summary()
    same = replace(cell, sweep="baselines", command="other", started_at=cell.finished_at, tags={})
    other = replace(cell, metrics={**cell.metrics, "accuracy": 0.5})
    assert payload.fingerprint(cell) == payload.fingerprint(same) != payload.fingerprint(other)

    reordered = replace(cell, categories=cell.categories[::-1])
    assert payload.fingerprint(reordered) == payload.fingerprint(cell)


def test_table_of_records_is_rectangular_and_keeps_its_text(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, summary(repeats=2), records=40)
    table = json.loads(payload.records_table(folder))
    assert len(table["data"]) == 80
    assert {len(row) for row in table["data"]} == {len(table["columns"])}
    first = dict(zip(table["columns"], table["data"][0], strict=True))
    assert (
        first["hypothesis"] == "7 May 2023 — über\u2028all"
        and first["label"] == "correct"
        and first["token_f1"] == 0.8
    )
    failed = dict(zip(table["columns"], table["data"][19], strict=True))
    assert failed["label"] is None and failed["error"].startswith("ReadTimeout")


def test_records_with_few_fields_are_still_shown(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, summary())
    (folder / "records.jsonl").write_text(
        '{"question_id": "a"}\n{"question_id": "b", "verdict": null}\n'
    )
    assert [row[0] for row in json.loads(payload.records_table(folder))["data"]] == ["a", "b"]
