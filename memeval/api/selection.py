"""Finished runs by key, by sweep, by data set and by time."""

from __future__ import annotations

import warnings
from datetime import datetime, timedelta
from pathlib import Path

from memeval.api.finished import Run
from memeval.comparison.finding import dataset_names, earliest, finished_runs
from memeval.config.paths import outputs_dir
from memeval.errors import UserError, unknown
from memeval.results import RUN_FILE
from memeval.results.calibration import read_shown_summary


def load_run(which: str | Path) -> Run:
    """A finished run, by its key, the beginning of its key, or its folder.

    Raises `UserError` if none or several match.
    """
    folder = Path(which)
    if not (folder / RUN_FILE).is_file():
        folder = _folder_of(str(which))

    try:
        return Run(folder, read_shown_summary(folder))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{folder / RUN_FILE} can't be read: {error}") from error


def _folder_of(key: str) -> Path:
    folders = {folder.name: folder for folder in _run_folders()}
    matching = [name for name in folders if key and name.startswith(key)]
    if len(matching) > 1:
        raise UserError(
            f"{len(matching)} runs begin with '{key}': {', '.join(sorted(matching)[:5])}"
        )

    if not matching:
        raise unknown("run", key, folders)

    return folders[matching[0]]


def load_runs(
    *,
    sweep: str | None = None,
    dataset: str | None = None,
    since: datetime | timedelta | str | None = None,
) -> list[Run]:
    """The finished runs of this project, the oldest first.

    Each argument leaves out the runs that don't match it.

    `since` is a time, a span up to now, or such a span as a string: `"7d"`, `"12h"`. A run whose
    `run.json` is damaged is left out, with a `RuntimeWarning`.
    """
    start = earliest(since)
    problems: list[str] = []
    found = finished_runs(outputs_dir() / "runs", problems.append)
    for problem in problems:
        warnings.warn(problem, RuntimeWarning, stacklevel=2)

    runs = [Run(run.folder, run.summary) for run in found]
    if sweep is not None:
        runs = [run for run in runs if run.summary.sweep == sweep]

    if dataset is not None:
        runs = [run for run in runs if dataset in dataset_names(run.summary)]

    if start is not None:
        runs = [run for run in runs if datetime.fromisoformat(run.summary.finished_at) >= start]

    return runs


def _run_folders() -> list[Path]:
    folder = outputs_dir() / "runs"
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
