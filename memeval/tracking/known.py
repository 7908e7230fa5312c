"""Which runs an SQLite store has already, without loading MLflow.

MLflow takes seconds to import. A sweep that was finished before asks once for all of its cells.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path

from memeval.config.filing import Filing
from memeval.results import RunSummary, read_tracked
from memeval.results.calibration import read_shown_summary
from memeval.text.redaction import redacted
from memeval.tracking import payload
from memeval.tracking.home import HOME_FILE, read_home_id
from memeval.tracking.payload import (
    COMPLETE,
    CONTENT,
    GROUP,
    NOTE,
    ORIGIN,
    RUN_KEY,
    SWEEP,
    SWEEP_ID,
)
from memeval.tracking.store import WORKFLOW, Store
from memeval.tracking.sweep_end import COMPARED

AT_ONCE = 500
"""Values that one query names."""

_RUNS = """
SELECT runs.run_uuid, runs.experiment_id, experiments.name, tags.value FROM tags
JOIN runs ON runs.run_uuid = tags.run_uuid
JOIN experiments ON experiments.experiment_id = runs.experiment_id
WHERE tags.key = ? AND runs.lifecycle_stage = 'active' AND experiments.lifecycle_stage = 'active'
AND tags.value IN ({marks})
"""
_TAGS = "SELECT run_uuid, key, value FROM tags WHERE run_uuid IN ({marks})"
_METRICS = "SELECT run_uuid, key, value FROM latest_metrics WHERE run_uuid IN ({marks})"


_SHOWN = """
SELECT DISTINCT experiment_tags.value FROM runs
LEFT JOIN experiment_tags
ON experiment_tags.experiment_id = runs.experiment_id AND experiment_tags.key = ?
WHERE runs.run_uuid IN ({marks})
"""


@dataclass
class _Logged:
    """A run as the store has it."""

    run_id: str
    experiment_id: str
    experiment: str
    tags: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


def logged_before(filings: Mapping[Path, Filing], store: Store) -> dict[Path, str]:
    """Addresses of the run folders of which the store has a complete run with these very results,
    logged by this home and filed as is asked for.

    Folders for which that is not clear are left out: logging them finds out.
    """
    # A server, or another database, can only be asked through MLflow.
    if store.database is None or not store.database.is_file():
        return {}

    summaries = dict(_summaries(filings))
    try:
        uri = f"{store.database.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            known = _runs(connection, [summary.run_key for summary in summaries.values()])
    except sqlite3.Error:
        return {}

    urls = {}
    for folder, summary in summaries.items():
        runs = known.get(summary.run_key, [])
        if (
            # Of several all but one are left over, and logging removes them.
            len(runs) == 1
            and _is_as_logged(runs[0], folder, summary, store)
            and is_filed(runs[0].tags, runs[0].experiment, filings[folder], summary.sweep)
        ):
            run = runs[0]
            urls[folder] = (
                f"{store.page}/#/experiments/{run.experiment_id}/runs/{run.run_id}?{WORKFLOW}"
            )

    return urls


def shows_comparison(cells: Iterable[Path], digest: str, store: Store) -> bool:
    """Whether the experiments of these run folders show the end of a sweep with this digest."""
    if store.database is None or not store.database.is_file():
        return False

    run_ids = [read_tracked(cell).get(store.name) or "" for cell in cells]
    try:
        uri = f"{store.database.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            shown = {value for (value,) in _rows(connection, _SHOWN, run_ids, COMPARED)}
    except sqlite3.Error:
        return False

    return shown == {digest}


def _summaries(folders: Iterable[Path]) -> Iterable[tuple[Path, RunSummary]]:
    for folder in folders:
        try:
            yield folder, read_shown_summary(folder)
        except (OSError, ValueError, RecursionError):
            continue


def _runs(connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, list[_Logged]]:
    """The runs of each run key."""
    by_key: dict[str, list[_Logged]] = {}
    by_id: dict[str, _Logged] = {}

    for run_id, experiment_id, experiment, key in _rows(connection, _RUNS, keys, RUN_KEY):
        run = by_id[run_id] = _Logged(run_id, str(experiment_id), str(experiment))
        by_key.setdefault(key, []).append(run)

    for run_id, name, value in _rows(connection, _TAGS, list(by_id)):
        by_id[run_id].tags[name] = value

    for run_id, name, number in _rows(connection, _METRICS, list(by_id)):
        by_id[run_id].metrics[name] = float(number)

    return by_key


def _rows(
    connection: sqlite3.Connection, query: str, named: Sequence[str], *before: str
) -> Iterable[tuple[str, ...]]:
    for start in range(0, len(named), AT_ONCE):
        part = named[start : start + AT_ONCE]
        marks = ",".join("?" * len(part))
        yield from connection.execute(query.format(marks=marks), [*before, *part])


def _is_as_logged(run: _Logged, folder: Path, summary: RunSummary, store: Store) -> bool:
    """Whether nothing is left to log."""
    if read_tracked(folder).get(store.name) != run.run_id:
        return False

    home = read_home_id(folder.resolve().parent.parent / HOME_FILE)
    if home is None or run.tags.get(ORIGIN) != home or COMPLETE not in run.tags:
        return False

    return run.tags.get(CONTENT) == payload.fingerprint(summary) and same_metrics(
        payload.metrics(summary.metrics), run.metrics
    )


def is_filed(tags: Mapping[str, str], experiment: str, filing: Filing, sweep: str | None) -> bool:
    """Whether a run is filed as is asked for: in its experiment, under all its labels."""
    if filing.experiment not in (None, experiment):
        return False
    if sweep and sweep not in tags.get(SWEEP, "").split(","):
        return False
    if filing.sweep_id and filing.sweep_id not in tags.get(SWEEP_ID, "").split(","):
        return False
    if filing.group_by_sweep and filing.sweep_id not in (None, tags.get(GROUP)):
        return False
    if filing.note and tags.get(NOTE) != redacted(filing.note):
        return False

    return all(tags.get(name) == redacted(value) for name, value in filing.tags.items())


def same_metrics(expected: Mapping[str, float], logged: Mapping[str, float]) -> bool:
    """Whether a store still has the metrics that were logged: it may be damaged or edited."""
    return expected.keys() == logged.keys() and all(
        isclose(value, logged[name], rel_tol=1e-9) for name, value in expected.items()
    )
