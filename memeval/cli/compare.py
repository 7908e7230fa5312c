"""`python -m memeval compare [RUN ...] [sweep=…] [--baseline RUN]`: finished runs, compared."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence

from memeval.cli.comparison import metric_of
from memeval.cli.comparison_page import write_page_of
from memeval.cli.data import Parser
from memeval.cli.selecting import select_runs
from memeval.compare.build import compare_runs
from memeval.compare.files import write_comparison
from memeval.compare.finding import FinishedRun, named_run
from memeval.compare.metric import metric_named
from memeval.compare.records import Comparison
from memeval.compare.tables import comparison_text
from memeval.compare.words import refused
from memeval.config.paths import outputs_dir
from memeval.errors import StorageError, UserError
from memeval.private import make_folder
from memeval.redaction import redacted_in
from memeval.report.comparison import by_dataset, comparison_csv, comparison_markdown
from memeval.results import RECORDS_FILE
from memeval.results.files import file_digest
from memeval.shown import one_line

EXAMPLE = "for example:  python -m memeval compare sweep=baselines --baseline bm25"


def compare(arguments: Sequence[str]) -> int:
    """Prints how runs differ, and leaves it in outputs/comparisons/."""
    options = parser().parse_intermixed_args(list(arguments))
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

    for run in runs:
        check_records(run)

    comparison = compare_runs(
        runs,
        metric_named(options.metric or metric_of([run.summary for run in runs])),
        baseline=baseline,
        all_pairs=options.all_pairs,
        force=options.force,
    )
    if not comparison.differences:
        raise refusal(comparison)

    summaries = [run.summary for run in runs]
    folder = outputs_dir() / "comparisons" / comparison_name(comparison)
    try:
        make_folder(folder)
    except OSError as error:
        raise StorageError(f"{folder} can't be written: {error.strerror or error}") from error

    tables = "\n".join(map(comparison_markdown, by_dataset(summaries).values()))
    write_comparison(comparison, folder, tables, comparison_csv(summaries))
    if options.plots:
        from memeval.compare.plots import write_comparison_plots

        write_comparison_plots(comparison, folder)

    write_page_of(comparison, [run.folder for run in runs], folder / "comparison.html")
    if options.json:
        print(json.dumps(redacted_in(comparison.to_json()), indent=1))
        return 0

    print(comparison_text(comparison))
    for line in refused(comparison):
        print(line)

    print(f"files: {folder}")
    return 0


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
        help="accuracy (default; recall@10 after stages=retrieve), f1, recall@5, cost, tokens, "
        "context, latency, or any metric of the records",
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
    """The run that is compared with: by name as any run, or by its system among the chosen ones."""
    of_system = [run for run in chosen if run.summary.params.get("system") == word]
    return of_system[0] if len(of_system) == 1 else named_run(word, known)


def check_records(run: FinishedRun) -> None:
    """Raises `UserError` where the records of a run are not those that it wrote.

    A run of version 0.1 holds no digest of them: there, nothing can be seen.
    """
    digest = run.summary.files.get(RECORDS_FILE)
    path = run.folder / RECORDS_FILE
    try:
        is_whole = digest is None or file_digest(path) == digest
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
    message, *others = refused(comparison)
    kinds = {kind for refusal in comparison.refusals for kind in refusal.kinds}
    if "common" not in kinds:
        others.append("to compare all the same:  --force, which every table will say")

    return UserError(message, *others)


def comparison_name(comparison: Comparison) -> str:
    """The folder of a comparison: the same for the same runs and options."""
    parts = [comparison.metric, str(comparison.baseline), str(bool(comparison.forced))]
    parts += [run.key for run in comparison.runs]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]
