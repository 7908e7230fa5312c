"""The experiment that a run is filed in."""

from __future__ import annotations

from collections.abc import Sequence

from mlflow import MlflowClient
from mlflow.entities import Experiment, Run
from mlflow.exceptions import MlflowException

from memeval.config.filing import Filing
from memeval.results import RunSummary
from memeval.text.names import file_name
from memeval.tracking import payload
from memeval.tracking.store import Store
from memeval.tracking.view import experiment_tags


def restore_experiment(client: MlflowClient, name: str) -> None:
    """Restores an experiment that was deleted in MLflow's page, with its runs."""
    experiment = client.get_experiment_by_name(name)
    if experiment is not None and experiment.lifecycle_stage == "deleted":
        client.restore_experiment(experiment.experiment_id)


def wanted_experiment(summary: RunSummary, filing: Filing) -> str:
    """The name of the experiment in which a new run is filed."""
    return filing.experiment or payload.experiment_name(summary.dataset)


def choose_experiment(
    client: MlflowClient,
    store: Store,
    summary: RunSummary,
    filing: Filing,
    known: Sequence[Run],
) -> str:
    """The id of the experiment that a run belongs in.

    If the user sets none, a run stays in its experiment.
    """
    if filing.experiment is None and known:
        return add_view(client, client.get_experiment(known[-1].info.experiment_id), summary)

    name = wanted_experiment(summary, filing)
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return create_experiment(client, store, name, summary)

    return add_view(client, experiment, summary)


def create_experiment(client: MlflowClient, store: Store, name: str, summary: RunSummary) -> str:
    """Makes an experiment, unless another process makes it in the meantime; returns its id."""
    location = f"{store.artifacts}/{file_name(name)}" if store.artifacts else None
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


def add_view(client: MlflowClient, experiment: Experiment, summary: RunSummary) -> str:
    """Adds the columns of a run to the experiment's shared view; returns the experiment's id."""
    present = experiment.tags
    for key, value in experiment_tags(summary, present).items():
        if present.get(key) != value:
            client.set_experiment_tag(experiment.experiment_id, key, value)

    return str(experiment.experiment_id)
