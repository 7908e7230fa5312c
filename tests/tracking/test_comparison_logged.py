"""What is logged beside the runs as they were measured: comparisons, and corrected accuracies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from sample_runs import summary, write_folder

from memeval.config.filing import Filing
from memeval.results import RECORDS_FILE
from memeval.results.calibration import PPI, Calibration
from memeval.results.files import file_digest
from memeval.tracking.comparison import log_comparison
from memeval.tracking.log import log_run
from memeval.tracking.store import Store

GROUPED = Filing(sweep_id="curve-1", group_by_sweep=True)


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """The folder of a sweep."""
    folder = tmp_path / "outputs" / "sweeps" / "one"
    folder.mkdir(parents=True)
    for name in ("comparison.html", "comparison.json", "differences.svg", "cells.jsonl"):
        (folder / name).write_text("first", encoding="utf-8")

    return folder


def test_a_comparison_is_an_artifact_of_its_sweeps_run(
    store: Store, tmp_path: Path, sweep: Path
) -> None:
    runs = tmp_path / "outputs" / "runs"
    cells = [write_folder(runs, summary(system)) for system in ("bm25", "rag")]
    for cell in cells:
        log_run(cell, store, GROUPED)

    (url,) = log_comparison(cells, sweep, store)
    client = MlflowClient(store.uri)
    parent = url.rpartition("/")[2]
    assert client.get_run(parent).data.tags["memeval.kind"] == "sweep"
    names = {file.path for file in client.list_artifacts(parent)}
    assert names == {"comparison.html", "comparison.json", "differences.svg"}

    # The same sweep, a cell later: the run stays, and its files are those of now.
    (sweep / "comparison.html").write_text("second", encoding="utf-8")
    assert log_comparison(cells, sweep, store) == [url]
    page = client.download_artifacts(parent, "comparison.html", str(tmp_path))
    assert Path(page).read_text(encoding="utf-8") == "second"


def test_cells_that_are_below_no_sweep_have_no_place_for_a_comparison(
    store: Store, tmp_path: Path, sweep: Path
) -> None:
    runs = tmp_path / "outputs" / "runs"
    alone, unlogged = (write_folder(runs, summary(system)) for system in ("bm25", "rag"))
    run_id = log_run(alone, store).run_id
    client = MlflowClient(store.uri)
    # A user may put a run below one of their own: that is not a sweep of ours.
    experiment = client.get_run(run_id).info.experiment_id
    own = client.create_run(experiment).info.run_id
    client.set_tag(run_id, "mlflow.parentRunId", own)

    assert log_comparison([alone, unlogged], sweep, store) == []
    assert client.list_artifacts(own) == []


def test_a_corrected_run_is_logged_with_its_figures(store: Store, tmp_path: Path) -> None:
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
        unlabelled=0,
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

    # A calibration of other records says nothing of this run.
    replace(calibration, records="1" * 64).write(folder)
    again = client.get_run(log_run(folder, store).run_id).data
    assert "accuracy_corrected" not in again.metrics
