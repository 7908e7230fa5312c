"""What is shown at the end of an invocation: its cells, and how they differ from the first."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from memeval.display.terminal import drawn, folded
from memeval.results import RunSummary
from memeval.runs.publish.conclusion import Conclusion, conclusion_of
from memeval.runs.publish.publisher import NOT_LOGGED
from memeval.runs.publish.sweep_end import MOST_SENTENCES, Compared, Logged
from memeval.runs.session import DoneCell, Session
from memeval.text.shown import printable

SCORED = ("ok", "retrieved")
"""Statuses of records that count as scored."""

Groups = Mapping[str, Sequence[RunSummary]]
"""The cells of each data set."""


def show_comparison(session: Session, *, interrupted: bool = False) -> Conclusion:
    """Prints a table of the invocation's cells for each data set, and leaves them in its folder as
    Markdown, CSV, a page and plots.

    After an interruption nothing is drawn or logged: the publisher, which does both, may be what
    the user did not want to wait for.
    """
    conclusion = conclusion_of(session)
    if not conclusion.cells:
        return conclusion

    compared = conclusion.compared
    for problem in conclusion.problems:
        _say(problem)

    said = len(conclusion.problems)
    # Words first: what a reader of a sweep wants is a sentence.
    print_sentences(compared)
    print_tables(conclusion.groups)
    print_differences(compared)
    pages = conclusion.write(draws=not interrupted)
    for problem in conclusion.problems[said:]:
        print(problem, file=sys.stderr)

    print_invalid(conclusion.summaries)
    print_unpublished(conclusion.cells)
    cells = conclusion.cells
    print(f"reports: {cells[-1].folder if len(cells) == 1 else conclusion.folder}")
    for page in pages:
        print(f"page: {page}")

    if any(cell.published and not cell.published.startswith(NOT_LOGGED) for cell in cells):
        print("compare: python -m memeval ui")

    if not interrupted:
        print_logged(conclusion.log())

    print_notes(conclusion.summaries)
    return conclusion


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


def print_differences(compared: Sequence[Compared]) -> None:
    """Prints the figures of the differences."""
    from memeval.comparison.tables import figures_text

    for group in compared:
        if group.comparison is not None and group.comparison.differences:
            print(f"\n{figures_text(group.comparison)}", end="")


def print_logged(logged: Logged) -> None:
    """Prints where the end of the sweep is in MLflow, and why it is not."""
    for url in logged.urls:
        print(f"in MLflow: {url}")

    for error in logged.errors:
        print(f"comparison {NOT_LOGGED}: {error}", file=sys.stderr)


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
