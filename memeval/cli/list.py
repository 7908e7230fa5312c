"""`python -m memeval list [FILTER ...]`: the finished runs of this home."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime

from memeval.api.selecting import select_runs
from memeval.cli.parser import Parser
from memeval.comparison.finding import shown_label
from memeval.comparison.tables import align
from memeval.metrics.accuracy import corrected
from memeval.metrics.formats import NONE, count, dollars, percent
from memeval.report.differences import labels
from memeval.results import fresh_cost_usd
from memeval.text.shown import one_line

SHORTEST_KEY = 8
CORRECTED = 3
"""The column of corrected accuracies, which is left out where no run has one."""


def list_runs(arguments: Sequence[str]) -> int:
    """Prints a line per run, the newest last."""
    options = parser().parse_intermixed_args(list(arguments))
    runs = select_runs(options.words, options.last).chosen
    summaries = [run.summary for run in runs]
    length = key_length([run.key for run in runs])

    rows = [["run", "key", "acc", "corrected", "n", "cost $", "when", "sweep"]]
    for run, label in zip(runs, labels(summaries), strict=True):
        get = run.summary.metrics.get
        when = datetime.fromisoformat(run.summary.finished_at).astimezone()
        rows.append(
            [
                shown_label(label, run.summary),
                run.key[:length],
                percent(get("accuracy")),
                corrected(run.summary) or NONE,
                count(get("n_questions")),
                dollars(fresh_cost_usd(run.summary.metrics)),
                f"{when:%Y-%m-%d %H:%M}",
                one_line(run.summary.sweep or "", 20),
            ]
        )

    if all(row[CORRECTED] == NONE for row in rows[1:]):
        rows = [[*row[:CORRECTED], *row[CORRECTED + 1 :]] for row in rows]

    print("\n".join(align(rows)))
    return 0


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    options = Parser.of("list", "lists finished runs, the newest last")
    options.add_argument(
        "words",
        nargs="*",
        metavar="FILTER",
        help="sweep=NAME, dataset=NAME, since=7d, a setting such as system=bm25, or a run",
    )
    options.add_argument("--last", type=int, metavar="N", help="the newest N that match")
    return options


def key_length(keys: Sequence[str]) -> int:
    """How many letters of a key distinguish all of these."""
    length = SHORTEST_KEY
    while len({key[:length] for key in keys}) < len(set(keys)):
        length += 1

    return length
