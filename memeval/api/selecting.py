"""Which finished runs a command is about: those that its words name, or that match its filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memeval.comparison.finding import (
    FinishedRun,
    finished_runs,
    labels_of,
    named_run,
    parse_filters,
    without_warning,
)
from memeval.config.paths import outputs_dir
from memeval.display.errors import report_damage
from memeval.errors import UserError
from memeval.text.shown import one_line


@dataclass(frozen=True)
class Selection:
    """The runs of this home, and those that were chosen of them."""

    known: list[FinishedRun]
    """All of this home, the oldest first."""
    chosen: list[FinishedRun]
    """Those that were named, in that order; then those that match, the oldest first."""


def select_runs(words: Sequence[str], last: int | None = None) -> Selection:
    """The runs that words of the command line choose; `last` keeps the newest that match.

    A word is the name of a run, or a filter `name=value`. Without either all runs match. Raises
    `UserError` where a word names no run or one run twice, and where nothing matches.
    """
    folder = outputs_dir() / "runs"
    known = finished_runs(folder, report_damage)
    if last is not None and last < 1:
        raise UserError(f"--last must be at least 1, not {last}")
    if not known and not words:
        raise UserError(
            f"no finished runs below {one_line(folder)}",
            "make one:  python -m memeval dataset=demo",
        )

    filters = _filters(words, known)
    chosen = [named_run(word, known) for word in words if word not in filters]

    if filters or last is not None or not chosen:
        rule = parse_filters(filters, known)
        matching = [run for run in known if rule.match(run)]
        if not matching:
            raise UserError(
                f"no finished run matches {one_line(' '.join(filters))}",
                "all runs of this home:  python -m memeval list",
            )

        chosen += matching[-last:] if last is not None else matching

    unique = {run.key: run for run in chosen}
    return Selection(known, list(unique.values()))


def _filters(words: Sequence[str], known: Sequence[FinishedRun]) -> list[str]:
    """The words that are filters: `name=value`, unless a run is named or labelled so."""
    with_sign = [word for word in words if "=" in word]
    if not with_sign:
        return []

    names = {name for run in known for name in (run.key, run.name)}
    settings = {name for run in known for name in run.summary.params}
    shown = [label for label in labels_of(known) if label.partition("=")[0] not in settings]

    # The name of a setting holds no space; `rag k=10` is the beginning of a label.
    return [
        word
        for word in with_sign
        if word not in names
        and " " not in word.partition("=")[0]
        and without_warning(word) not in shown
    ]
