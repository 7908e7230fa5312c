"""What is logged in addition to the measured runs: comparisons and corrected accuracies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from msgspec import structs
from sample_runs import summary, write_folder

from memeval.config.filing import Filing
from memeval.results import RECORDS_FILE
from memeval.results.calibration import PPI, Calibration
from memeval.results.files import file_digest
from memeval.tracking.comparison import log_comparison
from memeval.tracking.known import shows_comparison
from memeval.tracking.log import log_run
from memeval.tracking.store import TrackingStore
from memeval.tracking.sweep_end import SweepEnd, replace_own_part

SWEEP_ID = "curve-1"
SENTENCE = "rag is higher than bm25 by 4.1 points [0.9, 7.3] (p .008)."


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """A sweep's folder with comparison files."""
    folder = tmp_path / "outputs" / "sweeps" / "one"
    folder.mkdir(parents=True)
    for name in ("comparison.html", "comparison.json", "differences.svg", "cells.jsonl"):
        (folder / name).write_text("first", encoding="utf-8")

    return folder


def logged_cells(tmp_path: Path, store: TrackingStore, filing: Filing) -> list[Path]:
    runs = tmp_path / "outputs" / "runs"
    cells = [write_folder(runs, summary(system)) for system in ("bm25", "rag")]
    for cell in cells:
        log_run(cell, store, filing)

    return cells


def end_of(cells: list[Path], **changes: object) -> SweepEnd:
    names = dict(zip(cells, ("bm25 k=3", "rag k=3"), strict=True))
    end = SweepEnd(SWEEP_ID, names, settings=["system", "top_k"], sentences=[SENTENCE, "Second."])
    return structs.replace(end, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [True, False])
def test_a_comparison_is_an_artifact_of_its_sweeps_run(
    store: TrackingStore, tmp_path: Path, sweep: Path, grouped: bool
) -> None:
    filing = Filing(sweep_id=SWEEP_ID, group_by_sweep=grouped)
    cells = logged_cells(tmp_path, store, filing)
    end = end_of(cells)
    (url,) = log_comparison(sweep, store, end)
    client = MlflowClient(store.uri)
    run_id = url.rpartition("/")[2]
    run = client.get_run(run_id)
    assert (run.data.tags["memeval.kind"], run.info.status) == ("sweep", "FINISHED")
    assert SENTENCE.replace("[", r"\[").replace("]", r"\]") in run.data.tags["mlflow.note.content"]
    names = {file.path for file in client.list_artifacts(run_id)}
    assert names == {"comparison.html", "comparison.json", "differences.svg"}

    # The same sweep with a changed comparison: the run is kept, and its files are replaced.
    (sweep / "comparison.html").write_text("second", encoding="utf-8")
    assert log_comparison(sweep, store, end) == [url]
    page = client.download_artifacts(run_id, "comparison.html", str(tmp_path))
    assert Path(page).read_text(encoding="utf-8") == "second"


def test_runs_of_a_sweep_are_named_by_their_differences(
    store: TrackingStore, tmp_path: Path, sweep: Path
) -> None:
    cells = logged_cells(tmp_path, store, Filing(sweep_id=SWEEP_ID))
    end = end_of(cells)
    assert not shows_comparison(cells, end.digest, store)
    log_comparison(sweep, store, end)

    client = MlflowClient(store.uri)
    experiment = client.get_experiment_by_name("locomo")
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id], "tags.`memeval.run_key` LIKE '%'")
    assert sorted(str(run.info.run_name) for run in found) == ["bm25 k=3", "rag k=3"]
    state = json.loads(json.loads(experiment.tags["mlflow.sharedViewState.memeval"])["state"])
    assert state["selectedColumns"][:3] == [
        "params.`system`",
        "params.`top_k`",
        "tags.`rounded.accuracy`",
    ]
    assert shows_comparison(cells, end.digest, store)
    assert not shows_comparison(cells, end_of(cells, sentences=["Another."]).digest, store)


@pytest.mark.slow
def test_experiment_description_has_the_last_comparison(
    store: TrackingStore, tmp_path: Path, sweep: Path
) -> None:
    cells = logged_cells(tmp_path, store, Filing(sweep_id=SWEEP_ID))
    client = MlflowClient(store.uri)
    experiment = client.get_experiment_by_name("locomo")
    assert experiment is not None
    client.set_experiment_tag(experiment.experiment_id, "mlflow.note.content", "My own text.")

    for sentence in ("First words.", "Other words."):
        log_comparison(sweep, store, end_of(cells, sentences=[sentence]))

    shown = client.get_experiment(experiment.experiment_id).tags["mlflow.note.content"]
    assert shown.startswith("My own text.\n\n**Last comparison:** Other words.")
    assert "First words." not in shown and shown.count("Last comparison") == 1
    assert "/artifacts/comparison.html)" in shown and "viewStateShareKey=memeval)" in shown


def test_long_description_is_shortened_by_whole_sentences() -> None:
    sentences = [f"Sentence {number} of many." for number in range(300)]
    end = SweepEnd("s", {Path("a"): "a"}, settings=[], sentences=sentences)
    shown = replace_own_part("Mine.", end.text("#/page"), "\n\n[All runs](#/runs)", 5000)
    assert len(shown) <= 5000 and shown.endswith("[All runs](#/runs)")
    assert "[comparison.html](#/page)" in shown
    assert all(line.endswith(".") for line in shown.splitlines() if line.startswith("- "))


def test_cells_that_are_not_logged_have_no_comparison_there(
    store: TrackingStore, tmp_path: Path, sweep: Path
) -> None:
    unlogged = [write_folder(tmp_path / "outputs" / "runs", summary(name)) for name in ("rag",)]
    end = SweepEnd(SWEEP_ID, {unlogged[0]: "rag"}, settings=[], sentences=[])
    assert log_comparison(sweep, store, end) == []
    assert not shows_comparison(unlogged, end.digest, store)


def test_a_corrected_run_is_logged_with_its_figures(store: TrackingStore, tmp_path: Path) -> None:
    cell = summary("rag")
    folder = write_folder(tmp_path / "outputs" / "runs", cell)
    digest = file_digest(folder / RECORDS_FILE)
    replace(cell, files={RECORDS_FILE: digest}).write(folder)
    raw = log_run(folder, store)
    client = MlflowClient(store.uri)
    assert "accuracy_corrected" not in client.get_run(raw.run_id).data.metrics

    accuracy = cell.metrics["accuracy"]
    assert accuracy is not None
    calibration = Calibration(
        run_key=cell.run_key,
        records=digest,
        method=PPI,
        raw=accuracy,
        accuracy=0.5742105263157895,
        low=0.318,
        high=0.831,
        labels=10,
        rows_without_label=0,
        file="labels.jsonl",
        sha256="0" * 64,
        se=0.1308614913444651,
        power=0.5157894736842105,
    )
    calibration.write(folder)
    corrected = log_run(folder, store)
    assert corrected.created, "the figures are others: the run is logged again"
    logged = client.get_run(corrected.run_id).data
    assert logged.metrics["accuracy"] == pytest.approx(accuracy)
    assert logged.metrics["accuracy_corrected"] == pytest.approx(0.5742105263157895)
    assert logged.metrics["accuracy_corrected_low"] == pytest.approx(0.318)
    assert logged.metrics["accuracy_corrected_high"] == pytest.approx(0.831)
    assert not log_run(folder, store).created

    # A calibration of different records is not applied to this run.
    structs.replace(calibration, records="1" * 64).write(folder)
    again = client.get_run(log_run(folder, store).run_id).data
    assert "accuracy_corrected" not in again.metrics
