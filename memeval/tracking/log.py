"""Logs a finished run folder to MLflow, once: a parent run for the cell, a child for each repeat."""

from __future__ import annotations

import getpass
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import TypeVar

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag, ViewType
from mlflow.exceptions import MlflowException

from memeval.names import file_name
from memeval.results import CONFIG_FILE, RECORDS_FILE, TRACKED_FILE, RepeatResult, RunSummary, write_atomically
from memeval.tracking import payload
from memeval.tracking.payload import PREFIX
from memeval.tracking.store import LOCK_WAIT_S, WORKFLOW, Store, faults

RUN_KEY, CONTENT, COMPLETE, SWEEP, ORIGIN = (PREFIX + name for name in ("run_key", "content", "complete", "sweep", "origin"))
PARENT = "mlflow.parentRunId"
FILES = (CONFIG_FILE, RECORDS_FILE, "report.md")
HYPOTHESES = "hypotheses*.jsonl"
Item = TypeVar("Item")


@dataclass(frozen=True)
class Tracked:
    """Where a cell stands in MLflow."""

    run_id: str
    experiment_id: str
    url: str
    created: bool
    """False where the run was there already."""


def log_run(folder: Path, store: Store) -> Tracked:
    """Brings a run folder into the store. Logging the same results again changes nothing but the list of sweeps that asked for them.

    A run that was left half-logged is done again; one whose results have changed is replaced. Raises WorldError where the store or the
    folder can't be read or written; what is on disk stays as it is, and the same call logs it later.
    """
    with faults(store), FileLock(folder / f".{TRACKED_FILE}.lock", timeout=LOCK_WAIT_S):
        summary = RunSummary.read(folder)
        client = MlflowClient(store.uri)
        experiment_id = experiment(client, store, payload.experiment_name(summary.dataset), payload.page(summary))
        content = payload.fingerprint(summary)
        known = earlier(client, store, folder, experiment_id, summary.run_key)
        current = next((run for run in known if COMPLETE in run.data.tags and run.data.tags.get(CONTENT) == content), None)
        sweeps = ",".join(dict.fromkeys(name for name in [*sweeps_of(known), summary.sweep] if name))
        if current is None:
            identity = {RUN_KEY: summary.run_key, CONTENT: content, ORIGIN: origin(folder), **({SWEEP: sweeps} if sweeps else {})}
            run_id = log_cell(client, experiment_id, folder, summary, identity)
        else:
            run_id = current.info.run_id
            if sweeps != current.data.tags.get(SWEEP, ""):
                client.set_tag(run_id, SWEEP, sweeps)
        for run in known:
            if run is not current:
                delete(client, run)
        remember(folder, store, run_id)
        url = f"{store.page}/#/experiments/{experiment_id}/runs/{run_id}?{WORKFLOW}"
        return Tracked(run_id, experiment_id, url, created=current is None)


def experiment(client: MlflowClient, store: Store, name: str, tags: Mapping[str, str]) -> str:
    """The id of the data set's experiment: found, brought back if it was deleted in MLflow's page, or made."""
    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            place = f"{store.artifacts}/{file_name(name)}" if store.artifacts else None
            return str(client.create_experiment(name, artifact_location=place, tags=dict(tags)))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            return experiment(client, store, name, tags)
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    for key, value in tags.items():
        if key not in found.tags:
            client.set_experiment_tag(found.experiment_id, key, value)
    return str(found.experiment_id)


def earlier(client: MlflowClient, store: Store, folder: Path, experiment_id: str, run_key: str) -> list[Run]:
    """The cell's runs in the store that are not deleted. On a server that others share, only those logged from this folder."""
    ours = f" and tags.`{ORIGIN}` = '{origin(folder)}'" if store.remote else ""
    query = f"tags.`{RUN_KEY}` = '{run_key}'{ours}"
    runs = {run.info.run_id: run for run in client.search_runs([experiment_id], query, ViewType.ACTIVE_ONLY)}
    remembered = memory(folder).get(store.name)
    if remembered is not None and remembered not in runs:
        try:
            run = client.get_run(remembered)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
        else:
            if run.info.lifecycle_stage == "active" and run.data.tags.get(RUN_KEY) == run_key:
                runs[remembered] = run
    return list(runs.values())


def log_cell(client: MlflowClient, experiment_id: str, folder: Path, summary: RunSummary, identity: Mapping[str, str]) -> str:
    """Logs the cell and its repeats. The tag that says so comes last: without it the run counts as half-logged."""
    started, ended = payload.milliseconds(summary.started_at), payload.milliseconds(summary.finished_at)
    status = "FINISHED" if summary.valid else "FAILED"
    who = {"mlflow.user": user()}
    report = folder / "report.md"
    run_id = str(client.create_run(experiment_id, started, {**identity, **who}, summary.name).info.run_id)
    note = report.read_text(encoding="utf-8") if report.exists() else ""
    tables = {"mlflow.loggedArtifacts": json.dumps([{"path": payload.TABLE_FILE, "type": "table"}])}
    tags = {**payload.tags(summary, note), **tables, **identity}
    log_values(client, run_id, payload.metrics(summary.metrics), payload.params(summary), tags, time=ended)
    for path in (*(folder / name for name in FILES), *sorted(folder.glob(HYPOTHESES)), *sorted((folder / "plots").glob("*.png"))):
        if path.exists():
            client.log_artifact(run_id, str(path), "plots" if path.suffix == ".png" else None)
    if (folder / RECORDS_FILE).exists():
        client.log_text(run_id, payload.records_table(folder), payload.TABLE_FILE)
    for repeat in summary.repeats:
        child = log_repeat(client, experiment_id, summary, repeat, {PARENT: run_id, **who})
        client.set_terminated(child, status, ended)
    client.set_terminated(run_id, status, ended)
    client.set_tag(run_id, COMPLETE, "true")
    return run_id


def log_repeat(client: MlflowClient, experiment_id: str, summary: RunSummary, repeat: RepeatResult, tags: Mapping[str, str]) -> str:
    """Logs one repeat as a child run."""
    started, ended = payload.milliseconds(summary.started_at), payload.milliseconds(summary.finished_at)
    numbers = {"repeat": str(repeat.repeat), "seed": str(repeat.seed)}
    known = {**tags, **{PREFIX + name: value for name, value in numbers.items()}}
    run_id = str(client.create_run(experiment_id, started, known, f"{summary.name} repeat {repeat.repeat}").info.run_id)
    log_values(client, run_id, payload.metrics(repeat.metrics), {**payload.params(summary), **numbers}, {}, time=ended)
    return run_id


def log_values(
    client: MlflowClient, run_id: str, metrics: Mapping[str, float], params: Mapping[str, str], tags: Mapping[str, str], *, time: int
) -> None:
    """Logs any number of values in as few calls as MLflow's limits allow."""
    measured = batches([Metric(name, value, time, 0) for name, value in metrics.items()], 800)
    settings = batches([Param(name, value) for name, value in params.items()], 100)
    marks = batches([RunTag(name, value) for name, value in tags.items()], 100)
    for some_metrics, some_params, some_tags in zip_longest(measured, settings, marks, fillvalue=()):
        client.log_batch(run_id, some_metrics, some_params, some_tags)


def batches(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """Cuts a list into parts of at most so many items."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def delete(client: MlflowClient, run: Run) -> None:
    """Deletes a run and its repeats, as the page's own button does: they can be brought back."""
    query = f"tags.`{PARENT}` = '{run.info.run_id}'"
    for child in client.search_runs([run.info.experiment_id], query, ViewType.ACTIVE_ONLY):
        client.delete_run(child.info.run_id)
    client.delete_run(run.info.run_id)


def sweeps_of(runs: Sequence[Run]) -> list[str]:
    """Names of the sweeps that asked for the cell before."""
    return [name for run in runs for name in run.data.tags.get(SWEEP, "").split(",")]


def memory(folder: Path) -> dict[str, str]:
    """The run of this folder in each store that it was logged to; a damaged file is none."""
    try:
        known = json.loads((folder / TRACKED_FILE).read_text(encoding="utf-8"))
        return {store: str(run_id) for store, run_id in known.items()}
    except (FileNotFoundError, ValueError, AttributeError):
        return {}


def remember(folder: Path, store: Store, run_id: str) -> None:
    """Notes in the folder where it was logged."""
    known = memory(folder)
    if known.get(store.name) != run_id:
        write_atomically(folder / TRACKED_FILE, json.dumps({**known, store.name: run_id}, indent=1) + "\n")


def origin(folder: Path) -> str:
    """Which folder on which machine a run was logged from."""
    return f"{socket.gethostname()}:{folder.resolve()}".replace("'", "_")


def user() -> str:
    """Who logs; a container need not know."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def look(store: Store) -> None:
    """Opens the store, so that the first run doesn't wait for it."""
    with faults(store):
        MlflowClient(store.uri).search_experiments(max_results=1)
