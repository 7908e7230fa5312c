"""Finds the runs that an SQLite store already has, without loading MLflow, which takes seconds.

A server, or another database, can only be queried through MLflow.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from math import isclose
from pathlib import Path

from memeval.config.filing import Filing
from memeval.results import RunSummary, read_tracked
from memeval.results.calibration import read_shown_summary
from memeval.tracking import payload
from memeval.tracking.home import HOME_FILE, read_home_id
from memeval.tracking.labels import collect_labels
from memeval.tracking.payload import COMPLETE, CONTENT, GROUP, ORIGIN, RUN_KEY
from memeval.tracking.store import TrackingStore
from memeval.tracking.sweep_end import COMPARED

_RUN = """
SELECT runs.experiment_id, experiments.name FROM runs
JOIN experiments ON experiments.experiment_id = runs.experiment_id
WHERE runs.run_uuid = ?
AND runs.lifecycle_stage = 'active' AND experiments.lifecycle_stage = 'active'
"""
_TAGS = "SELECT key, value FROM tags WHERE run_uuid = ?"
_METRICS = "SELECT key, value FROM latest_metrics WHERE run_uuid = ?"
_COMPARED = """
SELECT experiment_tags.value FROM runs
JOIN experiment_tags ON experiment_tags.experiment_id = runs.experiment_id
WHERE runs.run_uuid = ? AND experiment_tags.key = ?
"""


def logged_urls(filings: Mapping[Path, Filing], store: TrackingStore) -> dict[Path, str]:
    """URLs of the run folders for which the store has a complete run with exactly these results,
    logged by this home and filed as requested.

    Uncertain folders are left out, so they are logged again if necessary.
    """
    urls = {}
    with suppress(sqlite3.Error), _open_database(store) as connection:
        for folder, filing in filings.items():
            url = _logged_url(connection, store, folder, filing)
            if url is not None:
                urls[folder] = url

    return urls


def shows_comparison(cells: Iterable[Path], digest: str, store: TrackingStore) -> bool:
    """Whether the experiments of these run folders show the end of a sweep with this digest."""
    with suppress(sqlite3.Error), _open_database(store) as connection:
        ids = [read_tracked(cell).get(store.name) for cell in cells]
        shown = {connection.execute(_COMPARED, (run_id, COMPARED)).fetchone() for run_id in ids}
        return shown == {(digest,)}

    return False


@contextmanager
def _open_database(store: TrackingStore) -> Iterator[sqlite3.Connection]:
    """The store's database. Raises `sqlite3.Error` if it is not a file, or can't be read."""
    if store.database is None:
        raise sqlite3.OperationalError("not an SQLite store")

    uri = f"{store.database.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        yield connection


def _logged_url(
    connection: sqlite3.Connection, store: TrackingStore, folder: Path, filing: Filing
) -> str | None:
    """The URL of a folder's run; None if something is left to log."""
    run_id = read_tracked(folder).get(store.name)
    row = connection.execute(_RUN, (run_id,)).fetchone()
    home = read_home_id(folder.resolve().parent.parent / HOME_FILE)
    if row is None or home is None:
        return None

    try:
        summary = read_shown_summary(folder)
    except (OSError, ValueError, RecursionError):
        return None

    experiment_id, experiment = row
    tags = dict(connection.execute(_TAGS, (run_id,)))
    metrics = dict(connection.execute(_METRICS, (run_id,)))
    is_ours = tags.get(ORIGIN) == home and tags.get(RUN_KEY) == summary.run_key
    if (
        is_ours
        and is_as_logged(tags, metrics, summary)
        and is_filed(tags, str(experiment), filing, summary.sweep)
    ):
        return store.run_page(str(experiment_id), str(run_id))

    return None


def is_as_logged(
    tags: Mapping[str, str], metrics: Mapping[str, float], summary: RunSummary
) -> bool:
    """Whether a run is complete and still has these results: a store may be damaged or edited."""
    if COMPLETE not in tags or tags.get(CONTENT) != payload.fingerprint(summary):
        return False

    expected = payload.metrics(summary.metrics)
    if expected.keys() != metrics.keys():
        return False

    return all(isclose(value, metrics[name], rel_tol=1e-9) for name, value in expected.items())


def is_filed(tags: Mapping[str, str], experiment: str, filing: Filing, sweep: str | None) -> bool:
    """Whether a run is filed as requested: in its experiment, under all its labels."""
    if filing.experiment not in (None, experiment):
        return False
    if filing.group_by_sweep and filing.sweep_id not in (None, tags.get(GROUP)):
        return False

    return collect_labels(filing, sweep, [tags]).items() <= tags.items()
