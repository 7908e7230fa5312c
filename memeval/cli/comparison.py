"""End of an invocation's output: its cells, and their differences from the first."""

import sys
from collections import Counter
from collections.abc import Sequence

from memeval.comparison.records import Comparison
from memeval.metrics.formats import coverage_percent
from memeval.report.differences import labels
from memeval.results import NoteKind, RunSummary
from memeval.runs.display.terminal import drawing_stream, print_folded
from memeval.runs.invocation import DoneCell, Invocation
from memeval.runs.publish.conclusion import Conclusion, conclude
from memeval.text.shipped import location_of
from memeval.text.shown import printable
from memeval.tracking.store import LOCAL_PAGE


def glossary_line() -> str:
    """A line with the location of the glossary for the tables."""
    return f"glossary: {location_of('docs/glossary.md')}"


def show_comparison(
    invocation: Invocation, *, statistics: bool = False, interrupted: bool = False
) -> Conclusion:
    """Prints the findings of an invocation in words, then a table of its cells for each data set,
    and with `statistics` the figures behind the words; writes them to its folder.

    After an interruption, nothing is drawn or logged: the publisher, which does both, may have
    caused it.
    """
    conclusion = conclude(invocation.folder, invocation.done_cells())
    if not conclusion.cells:
        return conclusion

    for group in conclusion.compared:
        if group.problem is not None:
            print_folded(group.problem)

    # Words first: a reader of a sweep wants a sentence.
    print_words(conclusion.comparisons, conclusion.distinct)
    print_tables(conclusion.distinct)
    if statistics:
        print_statistics(conclusion.comparisons)

    print(glossary_line())
    _write_files(conclusion, interrupted=interrupted)
    print_notes(conclusion.distinct)
    return conclusion


def _write_files(conclusion: Conclusion, *, interrupted: bool) -> None:
    """Writes and logs the comparison; prints its locations, and the runs that lack something."""
    pages, problems = conclusion.write(draws=not interrupted)
    for problem in problems:
        print(problem, file=sys.stderr)

    print_invalid(conclusion.distinct)
    print_unpublished(conclusion.cells)
    cells = conclusion.cells
    folder = cells[-1].folder if len(cells) == 1 else conclusion.folder
    print(f"reports: {folder}")
    for page in pages:
        print(f"page: {page}")

    if any(cell.url for cell in cells):
        print("compare: python -m memeval ui")

    if not interrupted:
        print_logged(*conclusion.log())


def print_tables(summaries: Sequence[RunSummary]) -> None:
    """Prints the cells of each data set, one per line."""
    from rich.console import Console
    from rich.text import Text

    from memeval.report.comparison import by_dataset, comparison_table

    groups, output = by_dataset(summaries), drawing_stream(sys.stdout)
    console = Console(file=output)
    # Without a terminal, rich assumes 80 columns, and would fold every row of a log.
    if not console.is_terminal:
        console = Console(file=output, width=max(console.width, 200))

    for name, group in groups.items():
        if len(groups) > 1:
            console.print(Text(f"\n{printable(name)}", style="bold"))

        console.print(comparison_table(group, console.width))


def print_words(comparisons: Sequence[Comparison], summaries: Sequence[RunSummary]) -> None:
    """Prints the findings in words, and the pairs that were not compared."""
    from memeval.comparison.sentences import MAX_SENTENCES
    from memeval.comparison.tables import sentences_text
    from memeval.comparison.words import refusal_lines
    from memeval.report.sentences import run_sentences

    if len(summaries) == 1:
        print_folded(" ".join(run_sentences(summaries[0])), end="\n\n")

    datasets = {comparison.runs[0].dataset for comparison in comparisons}
    for comparison in comparisons:
        if comparison.differences:
            if len(datasets) > 1:
                print_folded(comparison.runs[0].dataset)

            print(sentences_text(comparison, MAX_SENTENCES))

        for line in refusal_lines(comparison):
            print_folded(line)


def print_statistics(comparisons: Sequence[Comparison]) -> None:
    """Prints the figures of the differences, and their meaning."""
    from memeval.comparison.tables import comparison_text

    for comparison in comparisons:
        if comparison.differences:
            print(f"\n{comparison_text(comparison)}", end="")


def print_logged(urls: Sequence[str], problems: Sequence[str]) -> None:
    """Prints the URLs of the logged comparison in MLflow, and why it was not logged elsewhere."""
    for url in urls:
        # The URL of a local store works only while `memeval ui` runs.
        if not url.startswith(LOCAL_PAGE):
            print(f"in MLflow: {url}")

    for problem in problems:
        print(f"comparison not logged: {problem}", file=sys.stderr)


def print_invalid(summaries: Sequence[RunSummary]) -> None:
    """Names the cells that ended too early, and those whose coverage is too low."""
    for summary, name in zip(summaries, labels(summaries), strict=True):
        if summary.is_stopped:
            print_folded(f"STOPPED: {name}: not finished; the same command resumes it")
        elif not summary.valid:
            print_folded(f"INVALID: {name}: {_why_invalid(summary)}")


def print_unpublished(cells: Sequence[DoneCell]) -> None:
    """Prints, once per reason, why reports were not written or cells are not in MLflow."""
    for reason in dict.fromkeys(cell.not_logged for cell in cells):
        if reason is not None:
            print(f"not published: {reason}; the same command publishes it later", file=sys.stderr)


def print_notes(summaries: Sequence[RunSummary]) -> None:
    """Prints each note once, with the number of runs that have it.

    The reasons why a run is invalid are left out: `print_invalid` prints them.
    """
    notes: Counter[str] = Counter()
    for summary in summaries:
        has_reasons = not summary.valid and not summary.is_stopped
        for note in summary.notes:
            if not (has_reasons and note.kind is NoteKind.NO_SCORE):
                notes[str(note)] += 1

    for text, count in notes.items():
        share = f" ({count} of {len(summaries)} runs)" if count < len(summaries) else ""
        print_folded(f"note: {text}{share}")


def _why_invalid(summary: RunSummary) -> str:
    """Number of records with a score, the required number, and the reasons for missing scores."""
    reasons = [note.text.rstrip(".") for note in summary.notes_of(NoteKind.NO_SCORE)]
    if summary.found_nothing:
        # A note says whether nothing was found, or nothing fits into a budget.
        return "; ".join(["no question got any context from the memory", *reasons])

    scored, lost = 0, []
    for status, count in summary.statuses.items():
        if status.is_complete:
            scored += count
        else:
            lost.append(f"{count} {status}")

    text = f"{scored} of {sum(summary.statuses.values())} records have a score"
    coverage = summary.metrics.get("coverage")
    if coverage is not None:
        least = summary.params.get("min_coverage")
        text += f" ({coverage_percent(coverage)} %, min_coverage={least})"

    return f"{text}: {'; '.join(reasons) or ', '.join(lost)}"
