"""Finds the runs of a cell that were logged before."""

import re
from collections.abc import Iterable, Iterator

from mlflow import MlflowClient
from mlflow.entities import Run, ViewType

from memeval.tracking.payload import ORIGIN, RUN_KEY

ID = re.compile(r"[\w-]+")
"""A run's id; the file in a run folder may contain anything else."""
AT_ONCE = 500
"""Maximum ids per query."""


def find_earlier(client: MlflowClient, home: str, run_key: str) -> list[Run]:
    """The cell's runs in any experiment of the store that this home logged and that are not
    deleted. The latest comes last.

    Other homes may log the same cell to the same store.
    """
    query = f"tags.`{RUN_KEY}` = '{run_key}' and tags.`{ORIGIN}` = '{home}'"
    runs = search_everywhere(client, query)
    return sorted(runs, key=lambda run: int(run.info.start_time or 0))


def search_everywhere(client: MlflowClient, query: str) -> Iterator[Run]:
    """The active runs of all active experiments that match a query."""
    token = None
    while True:
        page = client.search_experiments(ViewType.ACTIVE_ONLY, page_token=token)
        ids = [experiment.experiment_id for experiment in page]
        if ids:
            yield from client.search_runs(ids, query, ViewType.ACTIVE_ONLY)

        token = page.token
        if not token:
            return


def active_runs(client: MlflowClient, ids: Iterable[str]) -> dict[str, Run]:
    """The runs with these ids that exist and are not deleted."""
    known = sorted(filter(ID.fullmatch, ids))
    runs: dict[str, Run] = {}
    # One by one, each id would take a request.
    for start in range(0, len(known), AT_ONCE):
        named = ", ".join(f"'{run_id}'" for run_id in known[start : start + AT_ONCE])
        for run in search_everywhere(client, f"attributes.run_id IN ({named})"):
            runs[str(run.info.run_id)] = run

    return runs
