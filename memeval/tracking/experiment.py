"""Files a run in its experiment, and below its sweep's run if `tracking.group=sweep`."""

from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import Experiment, LifecycleStage, Run, RunTag, ViewType
from mlflow.exceptions import MlflowException

from memeval.results import RunSummary
from memeval.text.names import file_name
from memeval.tracking.payload import GROUP, ORIGIN, PREFIX, SWEEP_ID
from memeval.tracking.store import LOCK_WAIT_S, TrackingStore
from memeval.tracking.view import experiment_tags

PARENT = "mlflow.parentRunId"
KIND, OF_SWEEP = f"{PREFIX}kind", "sweep"
DELETED = f"{PREFIX}deleted"
"""Tag of a run that was moved or replaced."""
SWEEPS_LOCK = ".sweeps.lock"


def find_experiment(client: MlflowClient, name: str) -> Experiment | None:
    """An experiment by name; one that was deleted on MLflow's page is restored with its runs."""
    experiment = client.get_experiment_by_name(name)
    if experiment is not None and experiment.lifecycle_stage == LifecycleStage.DELETED:
        client.restore_experiment(experiment.experiment_id)
        # MLflow also restores the runs that were deleted before the experiment was.
        for run in client.search_runs([experiment.experiment_id], f"tags.`{DELETED}` = 'true'"):
            delete(client, run)

    return experiment


def delete(client: MlflowClient, run: Run) -> None:
    """Deletes a run of this home and its repeats, as the delete button on MLflow's page does.

    They can be restored there.
    """
    query = f"tags.`{PARENT}` = '{run.info.run_id}'"
    for child in client.search_runs([run.info.experiment_id], query, ViewType.ACTIVE_ONLY):
        # Runs that others put below memeval's runs are kept.
        is_ours = child.data.tags.get(ORIGIN) == run.data.tags.get(ORIGIN)
        if is_ours and f"{PREFIX}repeat" in child.data.tags:
            client.delete_run(child.info.run_id)

    client.set_tag(run.info.run_id, DELETED, "true")
    client.delete_run(run.info.run_id)


def prepare_experiment(
    client: MlflowClient,
    store: TrackingStore,
    name: str,
    experiment: Experiment | None,
    summary: RunSummary,
) -> str:
    """Creates an experiment, or adds a run's columns to the existing one's view; returns its id."""
    if experiment is None:
        return create_experiment(client, store, name, summary)

    update_experiment(client, experiment, experiment_tags(summary, experiment.tags))
    return str(experiment.experiment_id)


def create_experiment(
    client: MlflowClient, store: TrackingStore, name: str, summary: RunSummary
) -> str:
    """Creates an experiment, unless another process creates it meanwhile; returns its id."""
    location = None
    if store.artifacts:
        location = f"{store.artifacts}/{file_name(name)}"

    tags = experiment_tags(summary, {})
    try:
        return str(client.create_experiment(name, artifact_location=location, tags=tags))
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise

        experiment = client.get_experiment_by_name(name)
        if experiment is None:
            raise

        return str(experiment.experiment_id)


def update_experiment(
    client: MlflowClient, experiment: Experiment, tags: Mapping[str, str]
) -> None:
    """Writes the tags that are missing from an experiment or differ, in their order."""
    for name, value in tags.items():
        if experiment.tags.get(name) != value:
            client.set_experiment_tag(experiment.experiment_id, name, value)


def update_tags(client: MlflowClient, run: Run, tags: Mapping[str, str]) -> bool:
    """Writes the tags that are missing from a run or differ; returns whether there were any."""
    known = run.data.tags
    missing = [RunTag(name, value) for name, value in tags.items() if known.get(name) != value]
    if missing:
        client.log_batch(run.info.run_id, tags=missing)

    return bool(missing)


def put_below_sweep(
    client: MlflowClient, run: Run, folder: Path, *, home: str, sweep_id: str
) -> None:
    """Makes a run a child of its sweep's run in the same experiment."""
    parent = sweep_run(client, run, folder, home=home, sweep_id=sweep_id)
    if update_tags(client, run, {PARENT: parent, GROUP: sweep_id}):
        # A run counts as running until it is terminated; each further cell moves the sweep's end.
        client.set_terminated(parent, "FINISHED", run.info.end_time)


def sweep_run(client: MlflowClient, run: Run, folder: Path, *, home: str, sweep_id: str) -> str:
    """The id of a sweep's run in the experiment of `run`, which is one of its cells; the sweep's
    run is created if it is missing.
    """
    # Several processes may log cells of one sweep at the same time.
    lock = folder.resolve().parent.parent / SWEEPS_LOCK
    with FileLock(lock, timeout=LOCK_WAIT_S):
        experiment_id = str(run.info.experiment_id)
        tags = {KIND: OF_SWEEP, ORIGIN: home, SWEEP_ID: sweep_id}
        query = " and ".join(f"tags.`{tag}` = '{value}'" for tag, value in tags.items())
        known = client.search_runs([experiment_id], query, ViewType.ACTIVE_ONLY, max_results=1)
        if known:
            return str(known[0].info.run_id)

        sweep = client.create_run(experiment_id, run.info.start_time, tags, sweep_id)
        return str(sweep.info.run_id)
