"""What is shown at the end of an invocation: its cells, and how they differ from the first."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.config.paths import outputs_dir
from memeval.display.terminal import drawn, folded
from memeval.errors import StorageError, UserError
from memeval.names import file_name
from memeval.results import RunSummary
from memeval.results.calibration import read_shown_summary
from memeval.runs.publish.comparison_page import write_page_of
from memeval.runs.publish.drawings import copy_drawn, draw_cells
from memeval.runs.publish.sweep_end import MOST_SENTENCES, NOT_LOGGED, Compared, log_sweep_end
from memeval.runs.session import (
    DoneCell,
    any_publisher,
    done_cells,
    session_folder,
)
from memeval.shown import printable

if TYPE_CHECKING:
    from memeval.comparison import Comparison

SCORED = ("ok", "retrieved")
"""Statuses of records that count as scored."""

Groups = Mapping[str, Sequence[RunSummary]]
"""The cells of each data set."""


def read_summaries() -> list[RunSummary]:
    """Summaries of this invocation's cells, in the sweep's order."""
    return [read_shown_summary(Path(cell.folder)) for cell in done_cells()]


def show_comparison(*, interrupted: bool = False) -> None:
    """Prints a table of the invocation's cells for each data set, and leaves them in outputs/ as
    Markdown, CSV, a page and plots.

    After an interruption nothing is drawn or logged: the publisher, which does both, may be what
    the user did not want to wait for.
    """
    from memeval.report.comparison import by_dataset

    cells = done_cells()
    if not cells:
        return

    summaries, folder = read_summaries(), session_folder()
    groups = by_dataset(summaries)
    compared = compare_groups(groups)
    # Words first: what a reader of a sweep wants is a sentence.
    print_sentences(compared)
    print_tables(groups)
    write_tables(summaries, folder)
    print_differences(compared, folder)
    draws = any(cell.plots for cell in cells) and not interrupted
    with plots_meanwhile(compared if draws else [], folder):
        pages = write_pages(compared, folder)

    print_invalid(summaries)
    print_unpublished(cells)
    print(f"reports: {cells[-1].folder if len(cells) == 1 else folder}")
    for page in pages:
        print(f"page: {page}")

    if any(cell.published and not cell.published.startswith(NOT_LOGGED) for cell in cells):
        print("compare: python -m memeval ui")

    if not interrupted:
        log_sweep_end(cells, compared, folder)

    print_notes(summaries)


def print_tables(groups: Groups) -> None:
    """Prints the cells of each data set, one per line."""
    from rich.console import Console
    from rich.text import Text

    from memeval.report.comparison import comparison_table

    output = drawn(sys.stdout)
    console = Console(file=output)
    # rich takes 80 columns where there is no terminal, and would fold every row of a log.
    if not console.is_terminal:
        console = Console(file=output, width=max(console.width, 200))

    for name, group in groups.items():
        if len(groups) > 1:
            console.print(Text(f"\n{printable(name)}", style="bold"))

        console.print(comparison_table(group, console.width))


def write_tables(summaries: Sequence[RunSummary], folder: Path) -> None:
    """Writes `comparison.md` and `comparison.csv`. Raises `StorageError`."""
    from memeval.report.comparison import comparison_csv, comparison_markdown

    try:
        (folder / "comparison.md").write_text(comparison_markdown(summaries), encoding="utf-8")
        (folder / "comparison.csv").write_text(comparison_csv(summaries), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{folder} can't be written: {error.strerror}") from error


def compare_groups(groups: Groups) -> list[Compared]:
    """How the cells of each data set differ from the first of them."""
    compared = []
    for name, group in groups.items():
        by_folder = {outputs_dir() / "runs" / summary.run_key: summary for summary in group}
        comparison = _compare(by_folder) if len(by_folder) > 1 else None
        suffix = f"_{file_name(name)}" if len(groups) > 1 else ""
        compared.append(Compared(list(by_folder), suffix, comparison))

    return compared


def _compare(by_folder: Mapping[Path, RunSummary]) -> Comparison | None:
    """How runs differ; None where they can't be compared, which is printed."""
    from memeval.comparison import FinishedRun, compare_runs, metric_named

    runs = [FinishedRun(folder, summary) for folder, summary in by_folder.items()]
    try:
        return compare_runs(runs, metric_named(metric_of(list(by_folder.values()))))
    except UserError as error:  # the cells are finished: what was measured is shown below
        _say(f"not compared: {error.message}")
        return None


def print_sentences(compared: Sequence[Compared]) -> None:
    """Prints what the differences say, and what was not compared."""
    from memeval.comparison.tables import sentences_text
    from memeval.comparison.words import refusal_lines

    for group in compared:
        if group.comparison is None:
            continue
        if group.comparison.differences:
            print(sentences_text(group.comparison, MOST_SENTENCES))

        for line in refusal_lines(group.comparison):
            print(line)


def print_differences(compared: Sequence[Compared], folder: Path) -> None:
    """Prints the figures of the differences, and adds them to the folder's files."""
    comparisons = [group.comparison for group in compared if group.comparison]
    if not comparisons:
        return

    from memeval.comparison.files import comparison_markdown, data_files, write_texts
    from memeval.comparison.tables import figures_text

    for comparison in comparisons:
        if comparison.differences:
            print(f"\n{figures_text(comparison)}", end="")

    path = folder / "comparison.md"
    parts = [path.read_text(encoding="utf-8"), *map(comparison_markdown, comparisons)]
    write_texts({path.name: "\n".join(parts), **data_files(comparisons)}, folder)


@contextmanager
def plots_meanwhile(compared: Sequence[Compared], folder: Path) -> Iterator[None]:
    """Has the publisher draw the cells while this process writes their page: on two cores the end
    of a sweep takes half as long.
    """
    several = [group for group in compared if len(group.folders) > 1]
    if not several:
        yield
        return

    problems: list[str] = []

    def draw() -> None:
        from memeval.comparison.plots import as_drawn

        for group in several:
            differences = as_drawn(group.comparison).to_json() if group.comparison else None
            plot = folder / f"comparison{group.suffix}.png"
            if copy_drawn(group.folders, plot, differences):
                continue

            result = draw_cells(any_publisher(), group.folders, plot, differences)
            if result.error is not None:
                problems.append(result.error)

    thread = threading.Thread(target=draw, name="memeval-drawing")
    thread.start()
    try:
        yield
    finally:
        thread.join()

    for problem in dict.fromkeys(problems):
        print(f"not drawn: {problem}", file=sys.stderr)


def write_pages(compared: Sequence[Compared], folder: Path) -> list[Path]:
    """Writes a page for each data set whose cells could be compared, and returns their paths."""
    pages = []
    for group in compared:
        page = folder / f"comparison{group.suffix}.html"
        if group.comparison and write_page_of(group.comparison, group.folders, page):
            pages.append(page)

    return pages


def print_invalid(summaries: Sequence[RunSummary]) -> None:
    """Names the cells that ended too early, and those whose coverage is too low."""
    for summary in summaries:
        if summary.is_stopped:
            _say(f"STOPPED: {summary.name}: not finished; the same command continues it")
        elif not summary.valid:
            _say(f"INVALID: {summary.name}: {_why_invalid(summary)}")


def print_unpublished(cells: Sequence[DoneCell]) -> None:
    """Says, once per reason, why cells are not in MLflow."""
    reasons = [cell.published for cell in cells if cell.published.startswith(NOT_LOGGED)]
    for reason in dict.fromkeys(reasons):
        print(f"{reason}; the same command logs it later", file=sys.stderr)


def print_notes(summaries: Sequence[RunSummary]) -> None:
    """Prints each note once, with the number of runs that have it.

    `print_invalid` has said why a run is invalid.
    """
    notes = Counter(
        note
        for summary in summaries
        for note in summary.notes
        if summary.valid or summary.is_stopped or not _is_reason(note)
    )
    for note, count in notes.items():
        of_some = f" ({count} of {len(summaries)} runs)" if count < len(summaries) else ""
        _say(f"note: {note}{of_some}")


def _say(line: str) -> None:
    print(folded(line, sys.stdout))


def _is_reason(note: str) -> bool:
    """Whether a note says why records have no score."""
    return " have no score" in note


def metric_of(summaries: Sequence[RunSummary]) -> str:
    """What runs are compared by: recall where nothing was answered, else accuracy."""
    if any(summary.tags.get("stages") != "retrieve" for summary in summaries):
        return "accuracy"

    # A reader who is shown three chunks has no recall@10.
    has_ten = all(summary.metrics.get("recall_at_10") is not None for summary in summaries)
    return "recall_at_10" if has_ten else "recall_shown"


def _why_invalid(summary: RunSummary) -> str:
    """How much of a cell has a score, how much was asked for, and what happened to the rest."""
    if summary.found_nothing:
        return "no question got anything from the memory: its search found nothing at all"

    whole = sum(summary.statuses.values())
    lost = {status: count for status, count in summary.statuses.items() if status not in SCORED}
    scored = whole - sum(lost.values())
    share, least = summary.metrics.get("coverage"), summary.params.get("min_coverage")
    reasons = [note.rstrip(".") for note in summary.notes if _is_reason(note)]
    what = f"{scored} of {whole} records have a score"
    if share is not None:
        what += f" ({100 * share:.1f} %, min_coverage={least})"

    counts = ", ".join(f"{count} {status}" for status, count in lost.items())
    return f"{what}: {'; '.join(reasons) or counts}"
