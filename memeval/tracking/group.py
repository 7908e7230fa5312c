"""Sweeps as parents of their cells, if `tracking.group=sweep`."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import Run, RunTag, ViewType

from memeval.tracking.payload import GROUP, ORIGIN, PREFIX, SWEEP_ID
from memeval.tracking.store import LOCK_WAIT_S

PARENT = "mlflow.parentRunId"
KIND, OF_SWEEP = f"{PREFIX}kind", "sweep"
SWEEPS_LOCK = ".sweeps.lock"


def put_below_sweep(
    client: MlflowClient, run: Run, folder: Path, *, home: str, sweep_id: str
) -> None:
    """Makes a run the child of its sweep's run in the same experiment."""
    parent = sweep_run(client, run, folder, home=home, sweep_id=sweep_id)
    tags = {PARENT: parent, GROUP: sweep_id}
    if any(run.data.tags.get(name) != value for name, value in tags.items()):
        client.log_batch(run.info.run_id, tags=[RunTag(*tag) for tag in tags.items()])
        # A run is under way until it is terminated; each further cell moves the sweep's end.
        client.set_terminated(parent, "FINISHED", run.info.end_time)


def sweep_run(client: MlflowClient, run: Run, folder: Path, *, home: str, sweep_id: str) -> str:
    """The id of the run of a sweep in the experiment of `run`, one of its cells; it is made if it
    is missing.
    """
    # Several processes may publish cells of one sweep.
    lock = folder.resolve().parent.parent / SWEEPS_LOCK
    with FileLock(lock, timeout=LOCK_WAIT_S):
        known = _find_sweep(client, str(run.info.experiment_id), home, sweep_id)
        return known or _create_sweep(client, run, home, sweep_id)


def _find_sweep(client: MlflowClient, experiment_id: str, home: str, sweep_id: str) -> str | None:
    """The id of a sweep's run; None if it has no run."""
    query = (
        f"tags.`{KIND}` = '{OF_SWEEP}' and tags.`{ORIGIN}` = '{home}' "
        f"and tags.`{SWEEP_ID}` = '{sweep_id}'"
    )
    runs = client.search_runs([experiment_id], query, ViewType.ACTIVE_ONLY, max_results=1)
    return str(runs[0].info.run_id) if runs else None


def _create_sweep(client: MlflowClient, run: Run, home: str, sweep_id: str) -> str:
    """Makes the run of a sweep, of which `run` is the first cell."""
    tags = {KIND: OF_SWEEP, ORIGIN: home, SWEEP_ID: sweep_id}
    sweep = client.create_run(run.info.experiment_id, run.info.start_time, tags, sweep_id)
    return str(sweep.info.run_id)
