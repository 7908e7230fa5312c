"""What is shown at the end of an invocation: its cells, and how they differ from the first."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from memeval.cli.comparison_page import write_page_of
from memeval.cli.session import any_publisher, done_cells, session_folder
from memeval.cli.terminal import drawn
from memeval.config.paths import outputs_dir
from memeval.errors import StorageError, UserError
from memeval.names import file_name
from memeval.results import RunSummary
from memeval.results.calibration import read_shown_summary
from memeval.shown import printable

MOST_SENTENCES = 12
"""Differences that are put in words at the end of a sweep; the files have all."""


def read_summaries() -> list[RunSummary]:
    """Summaries of this invocation's cells, in the sweep's order."""
    return [read_shown_summary(Path(cell.folder)) for cell in done_cells()]


def show_comparison(*, plots: bool = True) -> None:
    """Prints a table of the invocation's cells for each data set, and leaves them in outputs/ as
    Markdown, CSV and plots.
    """
    cells = done_cells()
    if not cells:
        return

    from rich.console import Console
    from rich.text import Text

    from memeval.report.comparison import (
        by_dataset,
        comparison_csv,
        comparison_markdown,
        comparison_table,
    )

    output = drawn(sys.stdout)
    summaries, console = read_summaries(), Console(file=output)
    if not console.is_terminal:
        console = Console(file=output, width=max(console.width, 200))

    groups = by_dataset(summaries)
    plots = plots and any(cell.plots for cell in cells)
    for name, group in groups.items():
        if len(groups) > 1:
            console.print(Text(f"\n{printable(name)}", style="bold"))

        console.print(comparison_table(group))

    folder = session_folder()
    try:
        (folder / "comparison.md").write_text(comparison_markdown(summaries), encoding="utf-8")
        (folder / "comparison.csv").write_text(comparison_csv(summaries), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{folder} can't be written: {error.strerror}") from error

    show_differences(groups, folder)
    for name, group in groups.items():
        if plots and len(group) > 1:
            plot = "comparison.png" if len(groups) == 1 else f"comparison_{file_name(name)}.png"
            any_publisher().compare(
                [outputs_dir() / "runs" / summary.run_key for summary in group], folder / plot
            )

    _warn(summaries)
    published = [cell.published for cell in cells]
    for line in dict.fromkeys(line for line in published if line.startswith("not logged")):
        print(f"{line}; the same command logs it later", file=sys.stderr)

    print(f"reports: {cells[-1].folder if len(cells) == 1 else folder}")
    if any(line and not line.startswith("not logged") for line in published):
        print("compare: python -m memeval ui")

    for note, count in Counter(note for summary in summaries for note in summary.notes).items():
        print(
            f"note: {note}"
            + (f" ({count} of {len(summaries)} runs)" if count < len(summaries) else "")
        )


def _warn(summaries: Sequence[RunSummary]) -> None:
    """Prints which cells have figures that can't be trusted."""
    for summary in summaries:
        if summary.is_stopped:
            print(f"STOPPED: {summary.name}: not finished; the same command continues it")
        elif not summary.valid:
            print(
                f"INVALID: {summary.name}: coverage {summary.metrics['coverage']:.3f}; "
                f"{_worst(summary)}"
            )


def show_differences(groups: Mapping[str, Sequence[RunSummary]], folder: Path) -> None:
    """Prints how the cells of each data set differ from the first of them, and adds it to the
    folder's files.
    """
    from memeval.compare import FinishedRun, compare_runs, metric_named
    from memeval.compare.files import comparison_markdown, data_files, write_texts
    from memeval.compare.tables import short_text
    from memeval.compare.words import refused

    comparisons = []
    for name, group in groups.items():
        by_key = {summary.run_key: summary for summary in group}
        if len(by_key) < 2:
            continue

        runs = [
            FinishedRun(outputs_dir() / "runs" / key, summary) for key, summary in by_key.items()
        ]
        try:
            comparison = compare_runs(runs, metric_named(metric_of(group)))
        except UserError as error:  # the cells are finished: what was measured is shown above
            print(f"not compared: {error.message}")
            continue

        comparisons.append(comparison)
        page = "comparison.html" if len(groups) == 1 else f"comparison_{file_name(name)}.html"
        write_page_of(comparison, runs, folder / page)
        if comparison.differences:
            print(f"\n{short_text(comparison, MOST_SENTENCES)}", end="")

        for line in refused(comparison):
            print(line)

    if not comparisons:
        return

    path = folder / "comparison.md"
    parts = [path.read_text(encoding="utf-8"), *map(comparison_markdown, comparisons)]
    write_texts({path.name: "\n".join(parts), **data_files(comparisons)}, folder)


def metric_of(summaries: Sequence[RunSummary]) -> str:
    """What runs are compared by: recall where nothing was answered, else accuracy."""
    is_retrieval = all(summary.tags.get("stages") == "retrieve" for summary in summaries)
    return "recall_at_10" if is_retrieval else "accuracy"


def _worst(summary: RunSummary) -> str:
    return ", ".join(
        f"{count} {status}" for status, count in summary.statuses.items() if status != "ok"
    )
