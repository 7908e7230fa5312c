"""The runs of a cell that were logged before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Run, ViewType
from mlflow.exceptions import MlflowException

from memeval.results import read_tracked
from memeval.tracking.home import home_id
from memeval.tracking.payload import ORIGIN, RUN_KEY
from memeval.tracking.store import Store

ID = re.compile(r"[\w-]+")
"""An id of a run; a run folder may hold anything else."""
AT_ONCE = 500
"""Ids that one query names."""


def find_earlier(client: MlflowClient, store: Store, folder: Path, run_key: str) -> list[Run]:
    """The cell's runs in the store, in whatever experiment, that this home logged and that are not
    deleted. The latest comes last.

    Other homes may log the same cell to the same store.
    """
    home = home_id(folder)
    query = f"tags.`{RUN_KEY}` = '{run_key}' and tags.`{ORIGIN}` = '{home}'"
    runs = {run.info.run_id: run for run in search_everywhere(client, query)}

    remembered = read_tracked(folder).get(store.name)
    if remembered is not None and remembered not in runs:
        run = active_run(client, remembered)
        if run is not None and run.data.tags.get(RUN_KEY) == run_key:
            runs[remembered] = run

    ours = [run for run in runs.values() if is_ours(run, home)]
    return sorted(ours, key=lambda run: int(run.info.start_time or 0))


def search_everywhere(client: MlflowClient, query: str) -> Iterator[Run]:
    """The active runs of all active experiments that a query finds."""
    token = None
    while True:
        page = client.search_experiments(ViewType.ACTIVE_ONLY, page_token=token)
        ids = [experiment.experiment_id for experiment in page]
        if ids:
            yield from client.search_runs(ids, query, ViewType.ACTIVE_ONLY)

        token = page.token
        if not token:
            return


def active_run(client: MlflowClient, run_id: str) -> Run | None:
    """A run by its id; None if it is unknown or was deleted."""
    try:
        run = client.get_run(run_id)
    except MlflowException as error:
        # MLflow's codes for an id that it does not know, and for one that can't be an id.
        if error.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            raise

        return None

    return run if run.info.lifecycle_stage == "active" else None


def active_runs(client: MlflowClient, ids: Iterable[str]) -> dict[str, Run]:
    """The runs with these ids that are known and not deleted."""
    known = sorted(filter(ID.fullmatch, ids))
    runs: dict[str, Run] = {}
    # One by one, each would be a request.
    for start in range(0, len(known), AT_ONCE):
        named = ", ".join(f"'{run_id}'" for run_id in known[start : start + AT_ONCE])
        for run in search_everywhere(client, f"attributes.run_id IN ({named})"):
            runs[str(run.info.run_id)] = run

    return runs


def is_ours(run: Run, home: str) -> bool:
    """Whether this home logged a run, and may replace it."""
    return run.data.tags.get(ORIGIN) == home
