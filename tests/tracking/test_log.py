"""Logging a run folder: what is stored in MLflow, and that it is stored once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run, ViewType
from sample_runs import summary, write_folder

from memeval.errors import WorldError
from memeval.report.markdown import write_report
from memeval.results import RunSummary
from memeval.tracking.log import log_run
from memeval.tracking.store import TrackingStore, locate, prepare_store

PARENTS = "tags.`memeval.run_key` LIKE '%'"


def runs(store: TrackingStore, query: str = PARENTS) -> list[Run]:
    client = MlflowClient(store.uri)
    ids = [experiment.experiment_id for experiment in client.search_experiments()]
    return list(client.search_runs(ids, query, ViewType.ACTIVE_ONLY))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_folder(tmp_path / "outputs" / "runs", summary("rag", repeats=3))
    write_report(made)
    return made


def test_run_is_logged_with_its_repeats_and_artifacts(
    store: TrackingStore, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracked = log_run(folder, store)
    client, cell = MlflowClient(store.uri), RunSummary.read(folder)
    run = client.get_run(tracked.run_id)
    assert (
        tracked.created
        and f"/#/experiments/{tracked.experiment_id}/runs/{tracked.run_id}?" in tracked.url
    )
    assert client.get_experiment(tracked.experiment_id).name == "locomo"
    assert (run.info.run_name, run.info.status) == (
        "rag turn k=10 extractive keyword n=1540",
        "FINISHED",
    )
    assert (run.info.start_time, run.info.end_time) == (1795287600000, 1795287617300)
    assert run.data.metrics == {
        name: pytest.approx(value) for name, value in cell.metrics.items() if value is not None
    }
    assert run.data.params["system"] == "rag" and run.data.params["compression_turn"] == "null"
    tags = run.data.tags
    assert (
        tags["memeval.run_key"] == cell.run_key
        and tags["memeval.command"] == cell.command
        and tags["memeval.complete"] == "true"
    )
    assert (
        " questions are answered right" in tags["mlflow.note.content"]
        and tags["mlflow.user"]
        and tags["mlflow.source.name"]
    )
    assert all(name.startswith(("memeval.", "mlflow.", "rounded.")) for name in tags)

    children = runs(store, f"tags.`mlflow.parentRunId` = '{tracked.run_id}'")
    assert sorted(child.data.params["seed"] for child in children) == ["42", "43", "44"]
    assert sorted(child.data.metrics["accuracy"] for child in children) == sorted(
        row.metrics["accuracy"] for row in cell.repeats
    )

    listed = {file.path for file in client.list_artifacts(tracked.run_id)} | {
        file.path for file in client.list_artifacts(tracked.run_id, "plots")
    }
    names = {"plots/accuracy_by_category"}
    plots = {f"{name}.{ending}" for name in names for ending in ("png", "svg")}
    assert listed == {
        "config.yaml",
        "records.jsonl",
        "records_table.json",
        "report.md",
        "plots",
        *plots,
    }
    assert run.info.artifact_uri.startswith((tmp_path / "mlruns" / "artifacts" / "locomo").as_uri())
    monkeypatch.setenv(
        "MLFLOW_TRACKING_URI", store.uri
    )  # load_table searches this store, not that of its client
    assert len(client.load_table(tracked.experiment_id, "records_table.json")) == 120


def test_the_same_results_are_logged_once(store: TrackingStore, folder: Path) -> None:
    first, second = log_run(folder, store), log_run(folder, store)
    assert first.created and not second.created and first.run_id == second.run_id
    (folder / "tracked.json").unlink()
    assert log_run(folder, store).run_id == first.run_id
    assert len(runs(store)) == 1
    assert list(json.loads((folder / "tracked.json").read_text()).values()) == [first.run_id]


@pytest.mark.slow
def test_sweeps_of_a_cell_are_collected_in_a_tag(store: TrackingStore, folder: Path) -> None:
    cell = RunSummary.read(folder)
    for sweep in (None, "baselines", "curve", "baselines", None):
        replace(cell, sweep=sweep, tags={**cell.tags, **({"sweep": sweep} if sweep else {})}).write(
            folder
        )
        tracked = log_run(folder, store)
    assert not tracked.created
    assert runs(store)[0].data.tags["memeval.sweep"] == "baselines,curve"


@pytest.mark.slow
def test_changed_results_replace_the_run_and_keep_its_sweeps(
    store: TrackingStore, folder: Path
) -> None:
    cell = RunSummary.read(folder)
    replace(cell, sweep="baselines").write(folder)
    first = log_run(folder, store)
    changed = replace(
        cell,
        metrics={**cell.metrics, "accuracy": 0.99},
        repeats=cell.repeats[:1],
        sweep="curve",
        tags={"sweep": "curve"},
    )
    changed.write(folder)
    second = log_run(folder, store)
    assert second.created and second.run_id != first.run_id
    (left,) = runs(store)
    assert (
        left.data.metrics["accuracy"] == 0.99
        and left.data.tags["memeval.sweep"] == "baselines,curve"
    )
    assert len(runs(store, "tags.`mlflow.parentRunId` LIKE '%'")) == 1


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("last", ["create_run", "log_batch", "log_artifacts", "set_terminated"])
def test_half_logged_run_is_logged_again(
    store: TrackingStore, folder: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    real = getattr(MlflowClient, last)

    def then_die(*args: object, **kwargs: object) -> object:
        real(*args, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, last, then_die)
        with pytest.raises(KeyboardInterrupt):
            log_run(folder, store)
    assert len(runs(store)) == 1
    assert log_run(folder, store).created
    assert len(runs(store)) == 1
    assert len(runs(store, "tags.`mlflow.parentRunId` LIKE '%'")) == 3


@pytest.mark.slow
def test_run_deleted_in_mlflow_is_logged_again(store: TrackingStore, folder: Path) -> None:
    first = log_run(folder, store)
    MlflowClient(store.uri).delete_run(first.run_id)
    second = log_run(folder, store)
    assert second.created and [run.info.run_id for run in runs(store)] == [second.run_id]


@pytest.mark.slow
def test_experiment_deleted_in_mlflow_is_restored(store: TrackingStore, folder: Path) -> None:
    first = log_run(folder, store)
    MlflowClient(store.uri).delete_experiment(first.experiment_id)
    again = log_run(folder, store)
    assert (again.experiment_id, again.run_id) == (first.experiment_id, first.run_id)


@pytest.mark.slow
def test_invalid_run_has_status_failed(store: TrackingStore, folder: Path) -> None:
    replace(RunSummary.read(folder), valid=False).write(folder)
    run = MlflowClient(store.uri).get_run(log_run(folder, store).run_id)
    assert run.info.status == "FAILED" and run.data.tags["memeval.valid"] == "false"


@pytest.mark.slow
def test_stopped_run_has_status_killed(store: TrackingStore, folder: Path) -> None:
    replace(RunSummary.read(folder), valid=False, status="stopped").write(folder)
    run = MlflowClient(store.uri).get_run(log_run(folder, store).run_id)
    assert run.info.status == "KILLED" and run.data.tags["memeval.status"] == "stopped"


@pytest.mark.slow
def test_more_values_than_one_batch_allows_are_all_logged(
    store: TrackingStore, folder: Path
) -> None:
    cell = RunSummary.read(folder)
    many = {f"m/{index}": float(index) for index in range(2300)}
    replace(
        cell,
        metrics=many,
        params={f"p{index}": index for index in range(450)},
        tags={f"t{index}": "x" for index in range(230)},
    ).write(folder)
    run = MlflowClient(store.uri).get_run(log_run(folder, store).run_id)
    assert len(run.data.metrics) == 2300 and len(run.data.params) == 450
    assert sum(name.startswith("memeval.t") for name in run.data.tags) == 230


@pytest.mark.slow
def test_folder_is_logged_once_to_each_of_two_stores(
    store: TrackingStore, folder: Path, tmp_path: Path, empty_database: Path
) -> None:
    shutil.copy(empty_database, tmp_path / "other.db")
    other = prepare_store(locate(tmp_path, "sqlite:///other.db"))
    one, two = log_run(folder, store), log_run(folder, other)
    assert one.created and two.created
    assert not log_run(folder, store).created and not log_run(folder, other).created


@pytest.mark.slow
def test_runs_logged_concurrently_by_two_processes_are_logged_once(
    store: TrackingStore, tmp_path: Path
) -> None:
    folders = [write_folder(tmp_path / "runs", summary("bm25", top_k=k)) for k in range(1, 5)]
    code = (
        "import sys; from pathlib import Path; "
        "from memeval.tracking.store import locate, prepare_store; "
        "from memeval.tracking.log import log_run\n"
        "for folder in sys.argv[2:]:\n"
        "    log_run(Path(folder), prepare_store(locate(Path(sys.argv[1]))))"
    )
    shares = [folders[:3], list(reversed(folders))]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), *map(str, share)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for share in shares
    ]
    output = [process.communicate(timeout=300)[1] for process in processes]
    assert output == ["", ""]
    assert sorted(run.data.params["top_k"] for run in runs(store)) == ["1", "2", "3", "4"]


def test_folder_without_results_is_an_error(store: TrackingStore, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(WorldError, match=r"No such file.*run\.json"):
        log_run(tmp_path / "empty", store)


@pytest.mark.slow
def test_failed_logging_of_artifacts_keeps_records_and_can_be_repeated(
    store: TrackingStore, folder: Path, tmp_path: Path
) -> None:
    blocked = tmp_path / "mlruns" / "artifacts"
    blocked.write_text("")
    before = (folder / "records.jsonl").read_bytes()
    with pytest.raises(WorldError, match="a file is where a folder should be"):
        log_run(folder, store)
    assert (folder / "records.jsonl").read_bytes() == before
    blocked.unlink()
    assert log_run(folder, store).created
    assert len(runs(store)) == 1


@pytest.mark.slow
def test_logging_prints_nothing(
    store: TrackingStore, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log_run(folder, store)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_the_answers_of_every_repeat_are_among_the_artifacts(
    store: TrackingStore, folder: Path
) -> None:
    for name in ("hypotheses.jsonl", "hypotheses_1.jsonl"):
        (folder / name).write_text(
            '{"question_id": "q1", "hypothesis": "a boat"}\n', encoding="utf-8"
        )
    tracked = log_run(folder, store)
    listed = {file.path for file in MlflowClient(store.uri).list_artifacts(tracked.run_id)}
    assert {"hypotheses.jsonl", "hypotheses_1.jsonl"} <= listed


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize(
    "name", ["..", "../../escaped", "/etc/escaped", "a/b", "CON", "ü" * 600, "", "a\nb"]
)
def test_data_set_name_cannot_move_artifacts_elsewhere(
    store: TrackingStore, tmp_path: Path, name: str
) -> None:
    made = write_folder(tmp_path / "outputs" / "runs", summary("rag", dataset=name))
    before = {path for path in tmp_path.rglob("*") if tmp_path / "mlruns" not in path.parents}
    tracked = log_run(made, store)
    (place,) = (tmp_path / "mlruns" / "artifacts").iterdir()
    assert place.name.isalnum()
    assert (place / tracked.run_id / "artifacts" / "records.jsonl").is_file()
    after = {path for path in tmp_path.rglob("*") if tmp_path / "mlruns" not in path.parents}
    ours = {"tracked.json", ".tracked.json.lock", ".home-id", ".home-id.lock"}
    assert {path.name for path in after - before} <= ours
