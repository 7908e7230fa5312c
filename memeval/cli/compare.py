"""`python -m memeval compare [RUN ...] [sweep=…] [--baseline RUN]`: finished runs, compared."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from memeval.api.selecting import select_runs
from memeval.cli.comparison import metric_of
from memeval.cli.data import Parser
from memeval.comparison.adjusting import adjust_by_discovery
from memeval.comparison.build import compare_runs
from memeval.comparison.files import as_json_value, write_comparisons
from memeval.comparison.finding import FinishedRun, named_run, run_among
from memeval.comparison.records import BENJAMINI_HOCHBERG, MAX_T, Comparison
from memeval.comparison.tables import comparison_text
from memeval.comparison.words import refusal_lines
from memeval.config.paths import outputs_dir
from memeval.errors import StorageError, UserError
from memeval.metrics.metric import Metric
from memeval.metrics.registry import metric_named
from memeval.names import file_name
from memeval.private import make_folder
from memeval.redaction import redacted_in
from memeval.report.comparison import by_dataset, comparison_csv, comparison_markdown
from memeval.results import RECORDS_FILE
from memeval.results.files import file_digest
from memeval.runs.publish.comparison_page import write_page_of
from memeval.shown import one_line

EXAMPLE = "for example:  python -m memeval compare sweep=baselines --baseline bm25"


def compare(arguments: Sequence[str]) -> int:
    """Prints how runs differ, and leaves it in outputs/comparisons/."""
    options = parser().parse_intermixed_args(list(arguments))
    runs, baseline = chosen_runs(options)
    for run in runs:
        check_records(run)

    metrics = chosen_metrics(options.metric, runs)
    comparisons = [
        compare_runs(
            runs, metric, baseline=baseline, all_pairs=options.all_pairs, force=options.force
        )
        for metric in metrics
    ]
    # What can't be compared by one metric may be compared by another: another judge matters only
    # to accuracies.
    if not any(comparison.differences for comparison in comparisons):
        raise refusal(comparisons[0])
    if options.adjust == BENJAMINI_HOCHBERG:
        comparisons = adjust_by_discovery(comparisons)

    folder = write_files(comparisons, runs, plots=options.plots)
    if options.json:
        print(json.dumps(redacted_in(as_json_value(comparisons)), indent=1))
        return 0

    for comparison in comparisons:
        print(comparison_text(comparison))
        for line in refusal_lines(comparison):
            print(line)

    print(f"files: {folder}")
    return 0


def chosen_runs(options: argparse.Namespace) -> tuple[list[FinishedRun], int]:
    """The runs to compare, and the position of the baseline among them. Raises `UserError`."""
    if not options.words and options.last is None:
        raise UserError("compare needs two runs, or a filter such as sweep=…", EXAMPLE)
    if options.all_pairs and options.baseline is not None:
        raise UserError("--all-pairs compares all with all: leave --baseline out")

    selection = select_runs(options.words, options.last)
    runs, baseline = selection.chosen, 0
    if options.baseline is not None:
        first = find_baseline(options.baseline, runs, selection.known)
        if first.key not in {run.key for run in runs}:
            runs = [first, *runs]

        baseline = [run.key for run in runs].index(first.key)

    if len(runs) < 2:
        raise UserError(f"only one run: {one_line(runs[0].name)} has nothing to be compared with")

    return runs, baseline


def chosen_metrics(words: Sequence[str] | None, runs: Sequence[FinishedRun]) -> list[Metric]:
    """The metrics of the words `--metric`, each once; the usual one of these runs without any."""
    if not words:
        return [metric_named(metric_of([run.summary for run in runs]))]

    names = [name.strip() for word in words for name in word.split(",")]
    if not all(names):
        raise UserError("--metric names no metric", "use:  --metric accuracy,f1")

    by_name = {metric.name: metric for metric in map(metric_named, names)}
    return list(by_name.values())


def write_files(
    comparisons: Sequence[Comparison], runs: Sequence[FinishedRun], *, plots: bool
) -> Path:
    """Writes the comparisons into a folder of their own, and returns it. Raises `StorageError`."""
    summaries = [run.summary for run in runs]
    # Named by runs and options: the same command again replaces its own files, and no others.
    folder = outputs_dir() / "comparisons" / comparison_name(comparisons)
    try:
        make_folder(folder)
    except OSError as error:
        raise StorageError(f"{folder} can't be written: {error.strerror or error}") from error

    tables = "\n".join(map(comparison_markdown, by_dataset(summaries).values()))
    write_comparisons(comparisons, folder, tables, comparison_csv(summaries))
    for comparison in comparisons:
        # The first metric has the plain names; the others are beside it.
        suffix = "" if comparison is comparisons[0] else f"_{file_name(comparison.metric)}"
        if plots:
            from memeval.comparison.plots import write_comparison_plots

            write_comparison_plots(comparison, folder, suffix)

        folders = [run.folder for run in runs]
        write_page_of(comparison, folders, folder / f"comparison{suffix}.html")

    return folder


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    options = Parser(
        prog="python -m memeval compare",
        description="compares finished runs on the questions that both scored",
    )
    options.add_argument(
        "words",
        nargs="*",
        metavar="RUN|FILTER",
        help="a run's key, its beginning, its name or its MLflow run id; or a filter: sweep=NAME, "
        "dataset=NAME, since=7d, or a setting such as system=bm25",
    )
    options.add_argument("--last", type=int, metavar="N", help="the newest N runs that match")
    options.add_argument(
        "--baseline",
        metavar="RUN",
        help="the run that the others are compared with (default: the first); the name of its "
        "system is enough where it is the only one",
    )
    options.add_argument(
        "--metric",
        metavar="M",
        action="append",
        help="accuracy (default; recall@10 after stages=retrieve), f1, recall@5, cost, tokens, "
        "context, latency, or any metric of the records; several with commas",
    )
    options.add_argument(
        "--adjust",
        choices=[MAX_T, BENJAMINI_HOCHBERG],
        default=MAX_T,
        help="how p is adjusted: max-t, for the differences of each metric (default), or bh, "
        "Benjamini-Hochberg over the differences of all metrics",
    )
    options.add_argument("--all-pairs", action="store_true", help="compare all runs with all")
    options.add_argument(
        "--force",
        action="store_true",
        help="compare also what differs in data, questions, labels, judge or coverage; every table "
        "says so",
    )
    options.add_argument(
        "--plots", action="store_true", help="draw the differences, as PNG and SVG"
    )
    options.add_argument("--json", action="store_true", help="print the comparison as JSON")
    return options


def find_baseline(
    word: str, chosen: Sequence[FinishedRun], known: Sequence[FinishedRun]
) -> FinishedRun:
    """The run that is compared with: by its system or its label among the chosen runs, or by name
    as any run.
    """
    return run_among(word, chosen) or named_run(word, known)


def check_records(run: FinishedRun) -> None:
    """Raises `UserError` where the records of a run are not those that it wrote."""
    digest = run.summary.files.get(RECORDS_FILE)
    path = run.folder / RECORDS_FILE
    try:
        is_whole = file_digest(path) == digest
    except OSError as error:
        raise UserError(
            f"{path} can't be read: {error.strerror or error}",
            "the run's own command makes it again",
        ) from error

    if not is_whole:
        raise UserError(
            f"{path} is damaged or was edited", f"look:  python -m memeval verify {run.key}"
        )


def refusal(comparison: Comparison) -> UserError:
    """The error where nothing could be compared."""
    message, *others = refusal_lines(comparison)
    kinds = {kind for refusal in comparison.refusals for kind in refusal.kinds}
    if "common" not in kinds:
        others.append("to compare all the same:  --force, which every table will say")

    return UserError(message, *others)


def comparison_name(comparisons: Sequence[Comparison]) -> str:
    """The folder of a comparison: the same for the same runs and options."""
    parts = []
    for comparison in comparisons:
        parts += [comparison.metric, str(comparison.baseline), str(bool(comparison.forced))]

    parts += [run.key for run in comparisons[0].runs]
    if comparisons[0].adjustment != MAX_T:
        parts.append(comparisons[0].adjustment)

    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]
