"""Logs a finished run folder to MLflow once: a parent run for the cell, a child per repeat."""

from __future__ import annotations

import getpass
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from math import isclose
from pathlib import Path
from tempfile import mkstemp
from typing import TypeVar
from uuid import uuid4

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag, ViewType
from mlflow.exceptions import MlflowException

from memeval.names import file_name
from memeval.results import (
    CONFIG_FILE,
    RECORDS_FILE,
    TRACKED_FILE,
    RepeatResult,
    RunSummary,
    write_atomically,
)
from memeval.tracking import payload
from memeval.tracking.payload import PREFIX
from memeval.tracking.store import LOCK_WAIT_S, WORKFLOW, Store, faults

RUN_KEY, CONTENT, COMPLETE, SWEEP, ORIGIN = (
    PREFIX + name for name in ("run_key", "content", "complete", "sweep", "origin")
)
PARENT = "mlflow.parentRunId"
FILES = (CONFIG_FILE, RECORDS_FILE, "report.md")
HYPOTHESES = "hypotheses*.jsonl"
HOME_FILE = ".home-id"
HOME_ID = re.compile(r"[0-9a-f]{32}")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Tracked:
    """Where a cell is in MLflow."""

    run_id: str
    experiment_id: str
    url: str
    created: bool
    """False where the run was there already."""


def log_run(folder: Path, store: Store) -> Tracked:
    """Brings a run folder into the store.

    Logging the same results again changes only the list of sweeps that asked for them. A run that
    was left half-logged is logged again; one whose results have changed is replaced.

    Raises `WorldError` where the store or the folder can't be read or written. What is on disk
    stays as it is, and the same call logs it later.
    """
    with faults(store), FileLock(folder / f".{TRACKED_FILE}.lock", timeout=LOCK_WAIT_S):
        summary = RunSummary.read(folder)
        client = MlflowClient(store.uri)
        experiment_id = open_experiment(
            client, store, payload.experiment_name(summary.dataset), payload.page(summary)
        )

        content = payload.fingerprint(summary)
        home = home_id(folder)
        known = find_earlier(
            client, store, folder, experiment_id=experiment_id, run_key=summary.run_key
        )
        current = next((run for run in known if is_as_logged(run, summary, content)), None)
        asked_for_by = [name for name in [*sweeps_of(known), summary.sweep] if name]
        sweeps = ",".join(dict.fromkeys(asked_for_by))

        if current is None:
            identity = {
                RUN_KEY: summary.run_key,
                CONTENT: content,
                ORIGIN: home,
                **({SWEEP: sweeps} if sweeps else {}),
            }
            run_id = log_cell(client, experiment_id, folder, summary, identity)
        else:
            run_id = current.info.run_id
            if sweeps != current.data.tags.get(SWEEP, ""):
                client.set_tag(run_id, SWEEP, sweeps)

        # Only now: until the new run is complete, the old one is what the page shows.
        for run in known:
            if run is not current:
                delete(client, run, home)

        remember(folder, store, run_id)

        url = f"{store.page}/#/experiments/{experiment_id}/runs/{run_id}?{WORKFLOW}"
        return Tracked(run_id=run_id, experiment_id=experiment_id, url=url, created=current is None)


def open_experiment(client: MlflowClient, store: Store, name: str, tags: Mapping[str, str]) -> str:
    """The id of the data set's experiment, which is made where there is none.

    One that was deleted in MLflow's page is restored.
    """
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        location = f"{store.artifacts}/{file_name(name)}" if store.artifacts else None
        try:
            return str(client.create_experiment(name, artifact_location=location, tags=dict(tags)))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

            # Another process made it in the meantime.
            return open_experiment(client, store, name, tags)

    if experiment.lifecycle_stage == "deleted":
        client.restore_experiment(experiment.experiment_id)

    for key, value in tags.items():
        if key not in experiment.tags:
            client.set_experiment_tag(experiment.experiment_id, key, value)

    return str(experiment.experiment_id)


def find_earlier(
    client: MlflowClient, store: Store, folder: Path, *, experiment_id: str, run_key: str
) -> list[Run]:
    """The cell's runs in the store that this home logged and that are not deleted.

    Other homes may log the same cell to the same store. Runs of memeval 0.1 name their folder, not
    their home. In the home's own store those of this folder count as well.
    """
    home, key = home_id(folder), f"tags.`{RUN_KEY}` = '{run_key}'"
    query = key if store.own else f"{key} and tags.`{ORIGIN}` = '{home}'"
    runs = {
        run.info.run_id: run
        for run in client.search_runs([experiment_id], query, ViewType.ACTIVE_ONLY)
    }

    remembered = read_tracked(folder).get(store.name)
    if remembered is not None and remembered not in runs:
        run = active_run(client, remembered)
        if run is not None and run.data.tags.get(RUN_KEY) == run_key:
            runs[remembered] = run

    return [run for run in runs.values() if is_ours(run, folder, home, in_own_store=store.own)]


def active_run(client: MlflowClient, run_id: str) -> Run | None:
    """A run by its id; None where there is none, or where it was deleted."""
    try:
        run = client.get_run(run_id)
    except MlflowException as error:
        if error.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            raise

        return None

    return run if run.info.lifecycle_stage == "active" else None


def is_ours(run: Run, folder: Path, home: str, *, in_own_store: bool) -> bool:
    """Whether this home logged a run, and may replace it."""
    logged_by = run.data.tags.get(ORIGIN)
    if logged_by == home:
        return True

    # Version 0.1 tagged its runs with host and folder, or not at all.
    of_this_folder = logged_by is None or logged_by.endswith(
        f":{folder.resolve()}".replace("'", "_")
    )

    return in_own_store and of_this_folder


def is_as_logged(run: Run, summary: RunSummary, content: str) -> bool:
    """Whether a run is complete and still has the results of `summary`.

    A store may be damaged or edited.
    """
    if COMPLETE not in run.data.tags or run.data.tags.get(CONTENT) != content:
        return False

    expected, logged = payload.metrics(summary.metrics), run.data.metrics
    return expected.keys() == logged.keys() and all(
        isclose(value, logged[name], rel_tol=1e-9) for name, value in expected.items()
    )


def log_cell(
    client: MlflowClient,
    experiment_id: str,
    folder: Path,
    summary: RunSummary,
    identity: Mapping[str, str],
) -> str:
    """Logs the cell and its repeats.

    The tag that marks the run as complete comes last: without it the run counts as half-logged.
    """
    started = payload.milliseconds(summary.started_at)
    ended = payload.milliseconds(summary.finished_at)
    status = "FINISHED" if summary.valid else "FAILED"
    who = {"mlflow.user": user()}
    run = client.create_run(experiment_id, started, {**identity, **who}, summary.name)
    run_id = str(run.info.run_id)

    report = folder / "report.md"
    note = report.read_text(encoding="utf-8") if report.exists() else ""
    tables = {"mlflow.loggedArtifacts": json.dumps([{"path": payload.TABLE_FILE, "type": "table"}])}
    log_values(
        client,
        run_id,
        metrics=payload.metrics(summary.metrics),
        params=payload.params(summary),
        tags={**payload.tags(summary, note), **tables, **identity},
        time=ended,
    )
    log_files(client, run_id, folder)

    of_cell = {PARENT: run_id, ORIGIN: identity[ORIGIN], **who}
    for repeat in summary.repeats:
        child = log_repeat(client, experiment_id, summary, repeat, of_cell)
        client.set_terminated(child, status, ended)

    client.set_terminated(run_id, status, ended)
    client.set_tag(run_id, COMPLETE, "true")

    return run_id


def log_files(client: MlflowClient, run_id: str, folder: Path) -> None:
    """Logs the files of a run folder as artifacts, and the records as a table."""
    files = [*(folder / name for name in FILES), *sorted(folder.glob(HYPOTHESES))]
    for path in files:
        if path.exists():
            client.log_artifact(run_id, str(path))

    for plot in sorted((folder / "plots").glob("*.png")):
        client.log_artifact(run_id, str(plot), "plots")

    if (folder / RECORDS_FILE).exists():
        client.log_text(run_id, payload.records_table(folder), payload.TABLE_FILE)


def log_repeat(
    client: MlflowClient,
    experiment_id: str,
    summary: RunSummary,
    repeat: RepeatResult,
    tags: Mapping[str, str],
) -> str:
    """Logs one repeat as a child run."""
    started = payload.milliseconds(summary.started_at)
    ended = payload.milliseconds(summary.finished_at)
    numbers = {"repeat": str(repeat.repeat), "seed": str(repeat.seed)}
    all_tags = {**tags, **{PREFIX + name: value for name, value in numbers.items()}}
    name = f"{summary.name} repeat {repeat.repeat}"
    run_id = str(client.create_run(experiment_id, started, all_tags, name).info.run_id)

    log_values(
        client,
        run_id,
        metrics=payload.metrics(repeat.metrics),
        params={**payload.params(summary), **numbers},
        tags={},
        time=ended,
    )

    return run_id


def log_values(
    client: MlflowClient,
    run_id: str,
    *,
    metrics: Mapping[str, float],
    params: Mapping[str, str],
    tags: Mapping[str, str],
    time: int,
) -> None:
    """Logs any number of values in as few calls as MLflow's limits allow."""
    # A call takes 1,000 values at most, of which 100 may be params and 100 tags.
    all_metrics = batches([Metric(name, value, time, 0) for name, value in metrics.items()], 800)
    all_params = batches([Param(name, value) for name, value in params.items()], 100)
    all_tags = batches([RunTag(name, value) for name, value in tags.items()], 100)

    for batch in zip_longest(all_metrics, all_params, all_tags, fillvalue=()):
        client.log_batch(run_id, *batch)


def batches(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """Cuts a list into parts of at most `size` items."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def delete(client: MlflowClient, run: Run, home: str) -> None:
    """Deletes a run of this home and its repeats, as the page's own button does.

    They can be restored there.
    """
    query = f"tags.`{PARENT}` = '{run.info.run_id}'"
    for child in client.search_runs([run.info.experiment_id], query, ViewType.ACTIVE_ONLY):
        # Runs that somebody else put below ours stay. Version 0.1 did not tag its repeats with an
        # origin.
        if child.data.tags.get(ORIGIN, home) == home and f"{PREFIX}repeat" in child.data.tags:
            client.delete_run(child.info.run_id)

    client.delete_run(run.info.run_id)


def sweeps_of(runs: Sequence[Run]) -> list[str]:
    """Names of the sweeps that asked for the cell before."""
    return [name for run in runs for name in run.data.tags.get(SWEEP, "").split(",")]


def read_tracked(folder: Path) -> dict[str, str]:
    """The run of this folder in each store that it was logged to.

    A damaged file counts as missing.
    """
    try:
        known = json.loads((folder / TRACKED_FILE).read_bytes())
        return {store: run_id for store, run_id in known.items() if isinstance(run_id, str)}
    except (FileNotFoundError, ValueError, AttributeError, RecursionError):
        return {}


def remember(folder: Path, store: Store, run_id: str) -> None:
    """Writes into the folder where it was logged."""
    known = read_tracked(folder)
    if known.get(store.name) == run_id:
        return

    text = json.dumps({**known, store.name: run_id}, indent=1)
    write_atomically(folder / TRACKED_FILE, text + "\n")


def home_id(folder: Path) -> str:
    """The random id of the home that a run folder belongs to.

    In a shared store it distinguishes the runs of homes. Its file is beside the run folders, and
    holds its own inode number as well: so a copy of a home is another home.
    """
    file = folder.resolve().parent.parent / HOME_FILE
    for _ in range(2):
        known = read_home_id(file)
        if known:
            return known

        make_home_id(file)

    return read_home_id(file) or uuid4().hex


def read_home_id(file: Path) -> str | None:
    """The id in a home's file; None where there is none, or where the file is a copy."""
    try:
        with file.open(encoding="utf-8") as opened:
            content = json.load(opened)
            inode = os.fstat(opened.fileno()).st_ino
    except (OSError, ValueError, RecursionError):
        return None

    if not isinstance(content, dict) or content.get("inode") != inode:
        return None

    known = content.get("id")
    return known if isinstance(known, str) and HOME_ID.fullmatch(known) else None


def make_home_id(file: Path) -> None:
    """Writes a new id. If several processes do so at once, the id of the first one stays.

    Raises `OSError` where the disk refuses.
    """
    with FileLock(file.with_name(f"{file.name}.lock"), timeout=LOCK_WAIT_S):
        if read_home_id(file):
            return

        descriptor, name = mkstemp(prefix=f"{file.name}.", dir=file.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as written:
                json.dump({"id": uuid4().hex, "inode": os.fstat(descriptor).st_ino}, written)

            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def user() -> str:
    """The name of the user who logs; a container may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def look(store: Store) -> None:
    """Opens the store, so that the first run doesn't wait for it."""
    with faults(store):
        MlflowClient(store.uri).search_experiments(max_results=1)
