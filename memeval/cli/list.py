"""`python -m memeval list [FILTER ...]`: the finished runs of this home."""

from collections.abc import Sequence
from typing import Any

from memeval.api.selecting import select_runs
from memeval.cli.parser import LAST, Parser, print_json
from memeval.comparison.finding import labels_of, shown_label
from memeval.comparison.tables import align
from memeval.metrics.accuracy import corrected_text
from memeval.metrics.formats import NONE, count, dollars, percent
from memeval.report.differences import system_of
from memeval.results import run_cost_usd
from memeval.results.run import Run
from memeval.results.summary import OWN_TAG, PACKAGE_TAG
from memeval.text.shown import one_line

SHORTEST_KEY = 8
OPTIONAL = (7, 3)
"""Columns that are left out if no run has a value, the last first: the package that a run came in,
and the corrected accuracy.
"""

USAGE = f"""
lists finished runs, newest last

words* FILTER  sweep=NAME, dataset=NAME, package=ID, since=7d, a setting such as system=bm25,
    tags.NAME=VALUE, or a run: its key or name, @last, @previous, @label:NAME
--json         print the runs, with all metrics, as JSON
{LAST}
"""
PARSER = Parser.of("list", USAGE)


def list_runs(arguments: Sequence[str]) -> int:
    """Prints a line per run, the newest last."""
    options = PARSER.parse_intermixed_args(list(arguments))
    runs = select_runs(options.words, options.last).chosen
    names = labels_of(runs)
    if options.json:
        print_json([_as_json(run, name) for run, name in zip(runs, names, strict=True)])
        return 0

    # The shortest prefix that distinguishes all of these keys.
    keys, length = {run.key for run in runs}, SHORTEST_KEY
    while len({key[:length] for key in keys}) < len(keys):
        length += 1

    rows = [["run", "key", "acc", "corrected", "n", "cost $", "when", "package", "sweep"]]
    for run, label in zip(runs, names, strict=True):
        get = run.summary.metrics.get
        rows.append(
            [
                shown_label(label, run.summary),
                run.key[:length],
                percent(get("accuracy")),
                corrected_text(run.summary) or NONE,
                count(run.summary.asked),
                dollars(run_cost_usd(run.summary)),
                f"{run.summary.ended:%Y-%m-%d %H:%M}",
                run.summary.tags.get(PACKAGE_TAG, NONE)[:SHORTEST_KEY],
                one_line(run.summary.sweep or "", 20),
            ]
        )

    for column in OPTIONAL:
        if all(row[column] == NONE for row in rows[1:]):
            for row in rows:
                del row[column]

    print("\n".join(align(rows)))
    return 0


def _as_json(run: Run, label: str) -> dict[str, Any]:
    """A run as printed by `list --json`. None: not measured."""
    summary = run.summary
    return {
        "key": run.key,
        "run": label,
        "name": summary.name,
        "label": summary.params.get("label"),
        "dataset": summary.dataset,
        "system": system_of(summary),
        "sweep": summary.sweep,
        "package": summary.tags.get(PACKAGE_TAG),
        "tags": {
            name.removeprefix(OWN_TAG): value
            for name, value in summary.tags.items()
            if name.startswith(OWN_TAG)
        },
        "valid": summary.valid,
        "status": summary.status,
        "finished_at": summary.finished_at,
        "metrics": summary.metrics,
        "folder": str(run.folder),
    }
