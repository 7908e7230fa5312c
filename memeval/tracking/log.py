"""Logs a finished run folder to MLflow once: a parent run for the cell, a child per repeat."""

import getpass
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import TypeVar

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import Experiment, LifecycleStage, Metric, Param, Run, RunTag
from mlflow.exceptions import MlflowException
from msgspec import Struct

from memeval.config.filing import Filing
from memeval.report.stamp import REPORT_FILE
from memeval.results import TRACKED_FILE, RepeatResult, RunSummary
from memeval.results.calibration import read_shown_summary
from memeval.tracking import payload
from memeval.tracking.artifacts import log_run_files
from memeval.tracking.earlier import find_earlier
from memeval.tracking.experiment import (
    PARENT,
    delete,
    find_experiment,
    prepare_experiment,
    put_below_sweep,
    update_tags,
)
from memeval.tracking.home import home_id, record_tracked
from memeval.tracking.inputs import dataset_input
from memeval.tracking.known import is_as_logged
from memeval.tracking.labels import collect_labels
from memeval.tracking.payload import COMPLETE, CONTENT, DESCRIPTION, NOTE, ORIGIN, PREFIX, RUN_KEY
from memeval.tracking.store import LOCK_WAIT_S, TrackingStore, store_errors
from memeval.tracking.view import join_name, run_name

BY_DATA_SET = Filing()
"""Filed under the data set's name, without the user's own labels."""
INPUT_TRIES = 4
"""Attempts to log a data set that other processes log as well."""
Item = TypeVar("Item")


class Tracked(Struct, frozen=True):
    """Location of a cell in MLflow."""

    run_id: str
    experiment_id: str
    url: str
    created: bool
    """False if the run already existed."""


def log_run(folder: Path, store: TrackingStore, filing: Filing = BY_DATA_SET) -> Tracked:
    """Logs a run folder to the store.

    Logging the same results again changes only the labels: the sweeps that include them, the user's
    own tags and note. A run that was only half logged is logged again; a run whose results have
    changed is replaced; a run that is to be filed in another experiment is moved.

    Raises `WorldError` if the store or the folder can't be read or written. Files on disk stay
    unchanged, and the same call logs them later.
    """
    with store_errors(store), FileLock(folder / f".{TRACKED_FILE}.lock", timeout=LOCK_WAIT_S):
        summary = read_shown_summary(folder)
        client = MlflowClient(store.uri)
        wanted = filing.experiment or payload.experiment_name(summary.dataset)
        home = home_id(folder)
        known, experiment = _earlier_runs(client, home, summary.run_key, filing, wanted)
        experiment_id = prepare_experiment(client, store, wanted, experiment, summary)
        labels = collect_labels(filing, summary.sweep, [run.data.tags for run in known])
        current = find_logged(known, experiment_id, summary)
        if current is None:
            content = payload.fingerprint(summary)
            identity = {RUN_KEY: summary.run_key, CONTENT: content, ORIGIN: home}
            run_id = log_cell(client, experiment_id, folder, summary, {**labels, **identity})
        else:
            run_id = current.info.run_id
            update_labels(client, current, folder, summary, labels)

        # Deleted only now: until the new run is complete, the page shows the old one.
        for run in known:
            if run is not current:
                delete(client, run)

        if filing.group_by_sweep and filing.sweep_id:
            run = current or client.get_run(run_id)
            put_below_sweep(client, run, folder, home=home, sweep_id=filing.sweep_id)

        # Last: a crash before this line leaves a run that the next call finds by its tags.
        record_tracked(folder, store, run_id)

        url = store.run_page(experiment_id, run_id)
        return Tracked(run_id=run_id, experiment_id=experiment_id, url=url, created=current is None)


def find_logged(known: Sequence[Run], experiment_id: str, summary: RunSummary) -> Run | None:
    """The first of the known runs in this experiment that has exactly these results."""
    for run in known:
        is_here = run.info.experiment_id == experiment_id
        if is_here and is_as_logged(run.data.tags, run.data.metrics, summary):
            return run

    return None


def update_labels(
    client: MlflowClient, run: Run, folder: Path, summary: RunSummary, labels: Mapping[str, str]
) -> None:
    """Writes the labels that are new to a finished run; a new note changes its description."""
    tags = dict(labels)
    if NOTE in labels and run.data.tags.get(NOTE) != labels[NOTE]:
        tags[DESCRIPTION] = payload.description(summary, read_report(folder), labels[NOTE])

    update_tags(client, run, tags)


def _earlier_runs(
    client: MlflowClient, home: str, run_key: str, filing: Filing, wanted: str
) -> tuple[list[Run], Experiment | None]:
    """The cell's earlier runs, and its experiment, if it exists: that of the earlier runs, unless
    the user sets one, else the one of the `wanted` name.
    """
    known = find_earlier(client, home, run_key)
    if known and filing.experiment is None:
        return known, client.get_experiment(known[-1].info.experiment_id)

    # MLflow refuses runs in a deleted experiment, and its name can't be given to another.
    experiment = find_experiment(client, wanted)
    # A restored experiment may contain the run.
    if experiment is not None and experiment.lifecycle_stage == LifecycleStage.DELETED:
        known = find_earlier(client, home, run_key)

    return known, experiment


def log_cell(
    client: MlflowClient,
    experiment_id: str,
    folder: Path,
    summary: RunSummary,
    own_tags: Mapping[str, str],
) -> str:
    """Logs the cell and its repeats; `own_tags` are its identity and its labels.

    The tag that marks the run as complete comes last: without it the run counts as half-logged.
    """
    started = payload.milliseconds(summary.started_at)
    ended = payload.milliseconds(summary.finished_at)
    status = "FINISHED" if summary.valid else "FAILED"
    if summary.is_stopped:
        status = "KILLED"

    who = {"mlflow.user": user_name()}
    name = run_name(summary)
    run_id = str(client.create_run(experiment_id, started, {**own_tags, **who}, name).info.run_id)

    tags = payload.tags(summary, read_report(folder), own_tags.get(NOTE, ""))
    # The tag that `log_table` would write: without it, the page has no table of the records.
    tags["mlflow.loggedArtifacts"] = json.dumps([{"path": payload.TABLE_FILE, "type": "table"}])
    metrics, params = payload.metrics(summary.metrics), payload.params(summary)
    tags |= own_tags
    log_values(client, run_id, metrics=metrics, params=params, tags=tags, time=ended)
    log_data_set(client, run_id, summary)
    log_run_files(client, run_id, folder)

    of_cell = {PARENT: run_id, ORIGIN: own_tags[ORIGIN], **who}
    for repeat in summary.repeats:
        child = log_repeat(client, experiment_id, summary, repeat, of_cell)
        client.set_terminated(child, status, ended)

    client.set_terminated(run_id, status, ended)
    client.set_tag(run_id, COMPLETE, "true")

    return run_id


def log_data_set(client: MlflowClient, run_id: str, summary: RunSummary) -> None:
    """Logs the data set as an input of the run.

    MLflow looks for the data set and then writes it, and fails if another process has written it
    between the two: the next try finds it.
    """
    for tries_left in reversed(range(INPUT_TRIES)):
        try:
            client.log_inputs(run_id, datasets=[dataset_input(summary)])
            return
        except MlflowException:
            if not tries_left:
                raise


def read_report(folder: Path) -> str:
    """The text of the run folder's report; empty without one."""
    report = folder / REPORT_FILE
    return report.read_text(encoding="utf-8") if report.exists() else ""


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
    number, seed = str(repeat.repeat), str(repeat.seed)
    all_tags = {**tags, f"{PREFIX}repeat": number, f"{PREFIX}seed": seed}
    name = join_name([f"repeat {number} of", *run_name(summary).split()])
    run_id = str(client.create_run(experiment_id, started, all_tags, name).info.run_id)

    metrics = payload.metrics(repeat.metrics)
    params = {**payload.params(summary), "repeat": number, "seed": seed}
    log_values(client, run_id, metrics=metrics, params=params, tags={}, time=ended)

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
    # A call accepts 1,000 values at most, of which 100 may be params and 100 tags.
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


def user_name() -> str:
    """The name of the user who logs; a container may lack one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def open_early(store: TrackingStore) -> None:
    """Opens the store, so that the first run doesn't wait for it."""
    with store_errors(store):
        MlflowClient(store.uri).search_experiments(max_results=1)
