"""The end of a sweep in MLflow: its comparison, the names of its runs, and their shared view."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Run

from memeval.results import read_tracked
from memeval.text.redaction import redacted
from memeval.tracking.artifacts import log_files
from memeval.tracking.earlier import active_runs
from memeval.tracking.experiment import sweep_run, update_experiment
from memeval.tracking.home import home_id
from memeval.tracking.payload import DESCRIPTION, TAG_LIMIT, cut
from memeval.tracking.store import WORKFLOW, TrackingStore, store_errors
from memeval.tracking.sweep_end import COMPARED, PAGE, SweepEnd, replace_own_part
from memeval.tracking.view import VIEW, VIEW_TAG, figures_of_view, view_tag

FILES = ("comparison*", "differences*", "conversations*", "curve_*", "haystack_*")
"""Patterns for the files of a comparison in a sweep's folder."""
RUN_NAME = "mlflow.runName"
EXPERIMENT_LIMIT = 5000
"""Maximum characters of an experiment's tag."""


def log_comparison(folder: Path, store: TrackingStore, end: SweepEnd) -> list[str]:
    """Logs the end of a sweep, whose comparison is in `folder`.

    Its cells are named after the settings in which they differ, and the view of their experiment
    shows these settings. The sweep has its own run for the files, which replace those of an earlier
    end of the same sweep; the experiment's description has the sentences and a link to the page. A
    sweep over several experiments has a run in each; all get the whole comparison.

    Returns the URLs of these runs; none if no cell is logged to this store. Raises `WorldError` if
    the store can't be read or written.
    """
    with store_errors(store):
        client = MlflowClient(store.uri)
        ids = {cell: read_tracked(cell).get(store.name) or "" for cell in end.names}
        runs = active_runs(client, ids.values())
        by_experiment: dict[str, dict[Path, Run]] = {}
        for cell, run_id in ids.items():
            if run := runs.get(run_id):
                by_experiment.setdefault(str(run.info.experiment_id), {})[cell] = run

        urls = []
        for cells in by_experiment.values():
            page = _log_to_experiment(client, cells, folder=folder, end=end)
            urls.append(f"{store.page}/{page}")

    return urls


def _log_to_experiment(
    client: MlflowClient, runs: Mapping[Path, Run], *, folder: Path, end: SweepEnd
) -> str:
    """Logs the end of a sweep to one of its experiments; returns the URL of its run."""
    first, run = next(iter(runs.items()))
    experiment_id = run.info.experiment_id
    sweep = sweep_run(client, run, first, home=home_id(first), sweep_id=end.sweep_id)
    files = chain.from_iterable(sorted(folder.glob(pattern)) for pattern in FILES)
    log_files(client, sweep, folder, files, {})

    for cell, run in runs.items():
        if run.info.run_name != end.names[cell]:
            # MLflow renames the run by this tag, in half the time of `update_run`.
            client.set_tag(run.info.run_id, RUN_NAME, end.names[cell])

    page = f"#/experiments/{experiment_id}"
    link = None
    if (folder / PAGE).exists():
        link = f"{page}/runs/{sweep}/artifacts/{PAGE}"

    text = redacted(end.text(link))
    client.set_tag(sweep, DESCRIPTION, cut(text, TAG_LIMIT))
    client.set_terminated(sweep, "FINISHED", max(run.info.end_time or 0 for run in runs.values()))

    experiment = client.get_experiment(experiment_id)
    view = f"\n\n[All runs]({page}/runs?{WORKFLOW}&viewStateShareKey={VIEW})"
    description = experiment.tags.get(DESCRIPTION, "")
    tags = {
        DESCRIPTION: replace_own_part(description, text, view, EXPERIMENT_LIMIT),
        VIEW_TAG: view_tag(
            end.columns,
            figures_of_view(experiment.tags.get(VIEW_TAG, "")),
            created_ms=min(int(run.info.start_time or 0) for run in runs.values()),
            longest_name=max(map(len, end.names.values())),
        ),
        # Last, so that an end that was only half logged is logged again.
        COMPARED: end.digest,
    }
    update_experiment(client, experiment, tags)
    return f"{page}/runs/{sweep}"
