"""`python -m memeval compare [RUN ...] [sweep=…] [--baseline RUN]`: finished runs, compared."""

import sys
from collections.abc import Sequence
from pathlib import Path

from memeval.api.comparing import compare_named
from memeval.cli.comparison import glossary_line, print_statistics, print_tables, print_words
from memeval.cli.parser import LAST, Parser, one_of, print_json
from memeval.comparison.files import as_json_value, write_comparisons
from memeval.comparison.page import write_comparison_plots, write_page_of
from memeval.comparison.records import BENJAMINI_HOCHBERG, MAX_T, Comparison
from memeval.comparison.words import table_remarks
from memeval.config.paths import outputs_dir
from memeval.report.comparison import by_dataset, comparison_csv, comparison_markdown
from memeval.results.files import writing
from memeval.results.private import make_folder
from memeval.results.run import Run
from memeval.text.names import file_name, text_digest

USAGE = f"""
compares finished runs on the questions that both scored

words* RUN|FILTER    a run's key, its beginning, its name or its MLflow run id; or a filter:
    sweep=NAME, dataset=NAME, package=ID, since=7d, or a setting such as system=bm25
{LAST}
--baseline RUN       the run that the others are compared with (default: the first); the name of
    its system is enough if no other run has that system
--metric* M:names    accuracy (default; recall@10 after stages=retrieve), f1, recall@5, cost,
    tokens, context, latency, or any metric of the records; several: with commas
--adjust {one_of((MAX_T, BENJAMINI_HOCHBERG))}  how p is adjusted: max-t, for the differences of
    each metric (default), or bh, Benjamini-Hochberg over the differences of all metrics
--all-pairs          compare each run with each other run
--force              also compare runs that differ in data, questions, labels, judge or coverage;
    every table says so
--stats              also print the table of differences: intervals, p, the smallest difference
    that the data could show, categories
--common             compare versions of a data set, on the questions that all runs asked in the
    same words with the same answers
--plots              draw the differences, as PNG and SVG
--json               print the comparison as JSON
"""
PARSER = Parser.of("compare", USAGE, adjust=MAX_T)


def compare(arguments: Sequence[str]) -> int:
    """Prints how runs differ, and writes the comparison to outputs/comparisons/."""
    options = PARSER.parse_intermixed_args(list(arguments))
    runs, comparisons = compare_named(
        options.words,
        options.metric,
        baseline=options.baseline,
        last=options.last,
        all_pairs=options.all_pairs,
        adjust=options.adjust,
        force=options.force,
        common=options.common,
    )
    if options.last is not None and len(runs) < options.last:
        print(f"only {len(runs)} runs match, not {options.last} (--last)", file=sys.stderr)

    # Printed first: the home may be on a full disk, or belong to someone else.
    if options.json:
        print_json(as_json_value(comparisons))
        write_files(comparisons, runs, plots=options.plots)
        return 0

    print_words(comparisons, ())
    for remark in table_remarks(comparisons):
        print(f"{remark}\n")

    print_tables([run.summary for run in runs])
    if options.stats:
        print_statistics(comparisons)

    print(glossary_line())
    print(f"files: {write_files(comparisons, runs, plots=options.plots)}")
    return 0


def write_files(comparisons: Sequence[Comparison], runs: Sequence[Run], *, plots: bool) -> Path:
    """Writes the comparisons into a new folder, and returns it. Raises `StorageError`."""
    summaries, folders = [run.summary for run in runs], [run.folder for run in runs]
    # Named by runs and options: repeating a command replaces its own files and no others.
    folder = outputs_dir() / "comparisons" / comparison_name(comparisons)
    with writing(folder):
        make_folder(folder)

    tables = "\n".join(map(comparison_markdown, by_dataset(summaries).values()))
    write_comparisons(comparisons, folder, tables, comparison_csv(summaries))
    for comparison in comparisons:
        # The files of the first metric have plain names; those of the others have a suffix.
        suffix = "" if comparison is comparisons[0] else f"_{file_name(comparison.metric)}"
        if plots:
            write_comparison_plots(comparison, folder, suffix)

        write_page_of(comparison, folders, folder / f"comparison{suffix}.html")

    return folder


def comparison_name(comparisons: Sequence[Comparison]) -> str:
    """The name of a comparison's folder: the same for the same runs and options."""
    parts = []
    for comparison in comparisons:
        parts += [comparison.metric, str(comparison.baseline), "; ".join(comparison.forced)]

    parts += [run.key for run in comparisons[0].runs]
    if comparisons[0].adjustment != MAX_T:
        parts.append(comparisons[0].adjustment)

    return text_digest(" ".join(parts))[:12]
