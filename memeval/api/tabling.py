"""The table of a paper, from finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memeval.api.arguments import checked
from memeval.api.notebook import Table
from memeval.api.selecting import run_word, select_runs
from memeval.comparison.finding import check_records
from memeval.comparison.paper.build import paper_table
from memeval.results.run import Run


@checked
def table(
    *runs: Run | str | Path | Sequence[Run | str | Path],
    columns: str | Sequence[str] = (),
    rows: str | Sequence[str] = (),
    caption: str = "",
    label: str = "",
    last: int | None = None,
    force: bool = False,
) -> Table:
    """The table of a paper: runs by metrics and categories, with intervals, and with letters for
    runs that can't be told apart.

    Runs are named as for `compare`; a list of runs, as a sweep has them, is taken as one argument.
    `columns` are metrics and `categories`, `rows` the settings that name the rows. Raises
    `UserError` for runs that may not share a table, unless `force`.
    """
    words: list[str] = []
    for run in runs:
        members = [run] if isinstance(run, Run | str | Path) else run
        words += [run_word(member) for member in members]

    chosen = select_runs(words, last).chosen
    for found in chosen:
        check_records(found)

    content = paper_table(
        chosen,
        _names(columns),
        rows=_names(rows),
        caption=caption,
        label=label,
        force=force,
    )
    return Table(content)


def _names(words: str | Sequence[str]) -> list[str]:
    """The names of an argument: a list, or a text with commas."""
    if isinstance(words, str):
        words = words.split(",")

    return [word.strip() for word in words if word.strip()]
