"""Selects finished runs by name, by filter or by key."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from memeval.api.arguments import check_types
from memeval.api.finished import FinishedRun
from memeval.comparison.finding import (
    Filters,
    check_records,
    earliest_time,
    finished_runs,
    labels_of,
    named_run,
    parse_filters,
    run_folder,
    without_warning,
)
from memeval.config.paths import outputs_dir
from memeval.errors import UserError, check_number
from memeval.results import RUN_FILE
from memeval.results.calibration import read_shown_summary
from memeval.results.files import reading
from memeval.results.run import Run
from memeval.runs.display.terminal import report_damage
from memeval.text.shown import one_line

VALUES_SHOWN = 8
"""Maximum number of a setting's values in a message."""


@dataclass(frozen=True)
class Selection:
    """The runs of this home, and the chosen ones."""

    known: list[Run]
    """All runs of this home, the oldest first."""
    chosen: list[Run]
    """The named runs, in that order; then those that match filters, the oldest first."""
    named: frozenset[str]
    """Keys of the runs that were named by key, name or label."""


def select_runs(words: Sequence[str], last: int | None = None) -> Selection:
    """The runs selected by command-line words; `last` keeps the newest that match.

    A word is the name of a run, or a filter `name=value`. Without words, all runs match. A
    run that is named twice is chosen once. Raises `UserError` if a word names no run or several,
    if nothing matches, and for two folders with the same run.
    """
    folder = outputs_dir() / "runs"
    known = finished_runs(folder, report_damage)
    check_number("last", last, {"least": 1})
    if not known and all("=" in word for word in words):
        raise UserError(
            f"no finished runs in {one_line(folder)}", "make one:  python -m memeval dataset=demo"
        )

    filters = _filters(words, known)
    chosen: dict[str, Run] = {}
    for word in words:
        if word not in filters:
            run = named_run(word, known)
            check_other_run(run, chosen)
            chosen[run.key] = run

    named = frozenset(chosen)
    if filters or last is not None or not chosen:
        rule = parse_filters(filters, known)
        matching = list(filter(rule.match, known))
        if not matching:
            raise UserError(
                f"no finished run matches {one_line(' '.join(filters))}",
                *_values_here(filters, known),
                "all runs of this home:  python -m memeval list",
            )

        for run in matching if last is None else matching[-last:]:
            check_other_run(run, chosen)
            chosen[run.key] = run

    return Selection(known, list(chosen.values()), named)


def check_other_run(run: Run, chosen: Mapping[str, Run]) -> None:
    """Raises `UserError` if a run of the same key was chosen from another folder."""
    other = chosen.get(run.key, run)
    if run.folder.resolve() != other.folder.resolve():
        raise UserError(
            f"{one_line(other.folder)} and {one_line(run.folder)} have the same settings and the "
            "same key, so they can't be used together",
            "use:  one of them",
        )


def _values_here(filters: Sequence[str], known: Sequence[Run]) -> list[str]:
    """For each filter that matches no run on its own, the values that runs of this home have."""
    lines = []
    for word in filters:
        name = word.partition("=")[0].removesuffix(".name")
        if name != "since" and not any(map(parse_filters([word], known).match, known)):
            values = {str(run.summary.params[name]) for run in known if name in run.summary.params}
            shown = ", ".join(sorted(values)[:VALUES_SHOWN])
            if shown:
                lines.append(one_line(f"{name} in this home:  {shown}", 200))

    return lines


def run_word(run: Run | str | Path) -> str:
    """Name of a run on the command line: its folder, as another home may have its key, too."""
    return str(run.folder if isinstance(run, Run) else run)


def select_run(run: Run | str | Path, command: str) -> tuple[Run, list[Run]]:
    """The run that a command takes, and all runs of this home.

    Raises like `select_one`, and if the run's records were changed.
    """
    selection = select_one(run, command)
    check_records(selection.chosen[0])
    return selection.chosen[0], selection.known


def select_one(run: Run | str | Path, command: str) -> Selection:
    """The run that a command takes. Raises `UserError` if none or several match."""
    selection = select_runs([run_word(run)])
    if len(selection.chosen) > 1:
        raise UserError(
            f"{len(selection.chosen)} runs match, but {command} takes only one",
            "to see their keys:  python -m memeval list",
        )

    return selection


def _filters(words: Sequence[str], known: Sequence[Run]) -> list[str]:
    """The words that are filters: `name=value`, unless a run has this name, label or folder."""
    if "=" not in "".join(words):
        return []

    names: set[str] = set()
    settings: set[str] = set()
    for run in known:
        names |= {run.key, run.name}
        settings.update(run.summary.params)

    shown = [label for label in labels_of(known) if label.partition("=")[0] not in settings]
    filters = []
    for word in words:
        setting, sign, _ = word.partition("=")
        # The name of a setting contains no space; `rag k=10` is the beginning of a label.
        if not sign or word in names or " " in setting or without_warning(word) in shown:
            continue
        with suppress(OSError, ValueError):
            if Path(word, RUN_FILE).is_file():
                continue

        filters.append(word)

    return filters


@check_types
def load_run(which: str | Path) -> FinishedRun:
    """A finished run, by its key, the beginning of its key, its folder, or the name that `list`
    prints.

    Raises `UserError` if none or several match.
    """
    folder = run_folder(str(which), outputs_dir() / "runs")
    try:
        with reading(folder / RUN_FILE):
            return FinishedRun(folder, read_shown_summary(folder))
    except ValueError as error:
        raise UserError(f"{folder / RUN_FILE} can't be read: {error}") from error


@check_types
def load_runs(
    *,
    sweep: str | None = None,
    dataset: str | None = None,
    since: datetime | timedelta | str | None = None,
) -> list[FinishedRun]:
    """The finished runs of this project, the oldest first.

    Each argument leaves out the runs that don't match it.

    `since` is a time, a span up to now, or such a span as a string: `"7d"`, `"12h"`. A run whose
    `run.json` is damaged is left out, with a `RuntimeWarning`.
    """
    start = earliest_time(since)
    problems: list[str] = []
    runs = finished_runs(outputs_dir() / "runs", problems.append)
    for problem in problems:
        warnings.warn(problem, RuntimeWarning, stacklevel=2)

    filters = Filters(sweep=sweep, dataset=dataset, since=start)
    return [FinishedRun(run.folder, run.summary) for run in runs if filters.match(run)]
