"""Experiment, labels and sweep of a run: changing them neither logs a run twice nor loses it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run, ViewType
from sample_runs import summary, write_folder

from memeval.config.filing import Filing, check_filing, read_filing
from memeval.config.schema import RunConfig
from memeval.errors import UserError
from memeval.report.markdown import write_report
from memeval.results import RunSummary
from memeval.tracking.experiment import find_experiment
from memeval.tracking.log import log_run
from memeval.tracking.store import TrackingStore

CELLS = "tags.`memeval.run_key` LIKE '%'"
SWEEPS = "tags.`memeval.kind` = 'sweep'"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "outputs" / "runs", summary("rag", repeats=2))


def runs(store: TrackingStore, query: str = CELLS, view: int = ViewType.ACTIVE_ONLY) -> list[Run]:
    client = MlflowClient(store.uri)
    ids = [experiment.experiment_id for experiment in client.search_experiments()]
    return list(client.search_runs(ids, query, view))


def experiment_of(store: TrackingStore, run: Run) -> str:
    return str(MlflowClient(store.uri).get_experiment(run.info.experiment_id).name)


@pytest.mark.slow
def test_a_run_moves_to_the_experiment_that_is_asked_for_and_stays_there(
    store: TrackingStore, folder: Path
) -> None:
    first = log_run(folder, store, Filing(tags={"paper": "table2"}, note="the one"))
    MlflowClient(store.uri).set_tag(first.run_id, "by hand", "kept")

    moved = log_run(folder, store, Filing(experiment="paper"))
    (run,) = runs(store)
    assert moved.created and run.info.run_id == moved.run_id != first.run_id
    assert experiment_of(store, run) == "paper"
    assert (run.data.tags["paper"], run.data.tags["by hand"]) == ("table2", "kept")
    assert run.data.tags["mlflow.note.content"].startswith("the one\n\n**")
    # The old run and its repeats can be restored in MLflow's UI.
    assert len(runs(store, view=ViewType.DELETED_ONLY)) == 1
    assert len(runs(store, "tags.`mlflow.parentRunId` LIKE '%'")) == 2

    again = log_run(folder, store)
    assert not again.created and again.run_id == moved.run_id
    assert log_run(folder, store, Filing(experiment="locomo")).created
    assert [experiment_of(store, run) for run in runs(store)] == ["locomo"]


@pytest.mark.slow
def test_moved_runs_do_not_return_with_a_deleted_experiment(
    store: TrackingStore, folder: Path
) -> None:
    client = MlflowClient(store.uri)
    left = log_run(folder, store).experiment_id
    moved = log_run(folder, store, Filing(experiment="paper"))
    client.delete_experiment(left)

    # The run is in the other experiment, which needs nothing of the deleted one.
    assert log_run(folder, store).run_id == moved.run_id
    assert client.get_experiment(left).lifecycle_stage == "deleted"

    assert find_experiment(client, "locomo") is not None
    assert client.get_experiment(left).lifecycle_stage == "active"
    assert [run.info.run_id for run in runs(store)] == [moved.run_id]
    assert len(runs(store, "tags.`mlflow.parentRunId` LIKE '%'")) == 2


def test_run_in_another_experiment_is_found_without_tracked_json(
    store: TrackingStore, folder: Path
) -> None:
    first = log_run(folder, store, Filing(experiment="paper"))
    (folder / "tracked.json").unlink()
    assert log_run(folder, store).run_id == first.run_id
    assert len(runs(store)) == 1


@pytest.mark.slow
def test_changed_results_stay_in_the_experiment_of_the_run(
    store: TrackingStore, folder: Path
) -> None:
    log_run(folder, store, Filing(experiment="paper", tags={"paper": "table2"}))
    cell = RunSummary.read(folder)
    replace(cell, metrics={**cell.metrics, "accuracy": 0.99}).write(folder)
    assert log_run(folder, store).created
    (run,) = runs(store)
    assert experiment_of(store, run) == "paper" and run.data.tags["paper"] == "table2"


def test_a_finished_run_gets_new_labels_without_being_logged_again(
    store: TrackingStore, folder: Path
) -> None:
    write_report(folder, plots=False)
    first = log_run(folder, store, Filing(tags={"paper": "table1", "author": "me"}))
    second = log_run(folder, store, Filing(tags={"paper": "table2"}, note="see **table 2**"))
    (run,) = runs(store)
    assert not second.created and first.run_id == second.run_id
    tags = run.data.tags
    assert (tags["paper"], tags["author"]) == ("table2", "me")
    assert tags["mlflow.note.content"].startswith("see **table 2**\n\n**")


def test_each_sweep_of_a_run_is_named_once(store: TrackingStore, folder: Path) -> None:
    for sweep in ("curve-1", "curve-2", "curve-1", None):
        log_run(folder, store, Filing(sweep_id=sweep))

    (run,) = runs(store)
    assert run.data.tags["memeval.sweep_id"] == "curve-1,curve-2"


def test_a_sweep_is_the_parent_of_its_cells(
    store: TrackingStore, folder: Path, tmp_path: Path
) -> None:
    other = write_folder(tmp_path / "outputs" / "runs", summary("bm25"))
    grouped = Filing(sweep_id="curve-1", group_by_sweep=True)
    logged = [log_run(one, store, grouped).run_id for one in (folder, other, folder)]
    (sweep,) = runs(store, SWEEPS)
    assert (sweep.info.run_name, sweep.info.status) == ("curve-1", "FINISHED")
    below = runs(store, f"tags.`mlflow.parentRunId` = '{sweep.info.run_id}'")
    assert {run.info.run_id for run in below} == set(logged)
    # Requested without a group, a cell keeps its parent.
    log_run(folder, store)
    assert len(runs(store, f"tags.`mlflow.parentRunId` = '{sweep.info.run_id}'")) == 2


def test_data_set_is_an_input_of_the_run(store: TrackingStore, folder: Path) -> None:
    run = MlflowClient(store.uri).get_run(log_run(folder, store).run_id)
    ((dataset, context),) = [
        (logged.dataset, logged.tags[0]) for logged in run.inputs.dataset_inputs
    ]
    sha256 = RunSummary.read(folder).tags["data_sha256"]
    assert (dataset.name, dataset.digest[:8]) == ("locomo", sha256[:8])
    assert dataset.source_type == "http" and "https://" in dataset.source
    assert (context.key, context.value) == ("mlflow.data.context", "eval")


@pytest.mark.slow
def test_input_of_a_run_has_the_number_of_its_own_questions(
    store: TrackingStore, tmp_path: Path
) -> None:
    runs = tmp_path / "outputs" / "runs"
    described = []
    for number in (1540, 20):
        cell = summary("rag", run_key=f"{number:016}")
        cell = replace(cell, metrics={**cell.metrics, "n_questions": float(number)})
        run_id = log_run(write_folder(runs, cell), store).run_id
        (logged,) = MlflowClient(store.uri).get_run(run_id).inputs.dataset_inputs
        described.append(json.loads(logged.dataset.profile)["n_questions"])

    assert described == [1540, 20], "MLflow keeps the first profile of a name and a digest"


@pytest.mark.slow
def test_mlflow_finds_the_store_without_a_tracking_uri(
    store: TrackingStore, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    tracked = log_run(folder, store)
    assert (tmp_path / "mlflow.db").resolve() == store.database
    monkeypatch.chdir(tmp_path)
    found = mlflow.search_runs(search_all_experiments=True, filter_string=CELLS)
    assert list(found["run_id"]) == [tracked.run_id]


@pytest.mark.parametrize("name", ["a:b", "a/../b", "/a", "a//b", "", "a\nb", "x" * 201, "é%"])
def test_tag_names_that_mlflow_rejects_are_refused_before_the_run(name: str) -> None:
    with pytest.raises(UserError, match="the name of a tag must consist of letters"):
        check_filing(RunConfig(tags={name: "x"}))


def test_tags_are_strings_and_nested_names_are_joined_by_dots() -> None:
    config = RunConfig(
        tags={"paper": {"table": 2, "final": True}, "share": 0.5}, note=" two\nlines "
    )
    filing = read_filing(config, "1a2b3c4d")
    assert dict(filing.tags) == {"paper.table": "2", "paper.final": "true", "share": "0.5"}
    assert (filing.note, filing.sweep_id) == ("two\nlines", "sweep-1a2b3c4d")
    with pytest.raises(UserError, match="51 tags"):
        check_filing(RunConfig(tags=dict.fromkeys(map(str, range(51)), "x")))


def test_users_own_database_is_not_replaced_by_the_link(
    tmp_path: Path, empty_database: Path
) -> None:
    from memeval.tracking.store import locate, prepare_store

    (tmp_path / "mlruns").mkdir()
    shutil.copy(empty_database, tmp_path / "mlruns" / "mlflow.db")
    (tmp_path / "mlflow.db").write_bytes(b"mine")
    prepare_store(locate(tmp_path))
    assert (tmp_path / "mlflow.db").read_bytes() == b"mine"
