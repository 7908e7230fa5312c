"""How a system's figures changed from version to version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memeval.api.arguments import check_types
from memeval.api.selecting import select_runs
from memeval.comparison.build import compare_runs
from memeval.comparison.finding import check_records, usual_metric
from memeval.comparison.records import Comparison
from memeval.comparison.sentences import sentences
from memeval.comparison.words import refusal_lines
from memeval.errors import UserError
from memeval.metrics.registry import metric_named
from memeval.report.differences import labels, system_of
from memeval.results.run import Run
from memeval.text.shown import one_line

EXAMPLE = "for example:  python -m memeval history system=notes dataset=demo"
MAX_NAMES = 4
"""Maximum number of systems or data sets that an error names."""


@dataclass(frozen=True)
class History:
    """Runs of one system on one data set, the oldest first, and each step from one to the next."""

    runs: Sequence[Run]
    names: Sequence[str]
    """Names that distinguish the runs: their labels, else their versions or times."""
    steps: Comparison
    """Each run against the one before it; p is adjusted over the steps."""

    def __repr__(self) -> str:
        return "\n".join(self.sentences)

    @property
    def sentences(self) -> list[str]:
        """Sentences about real steps, and about steps that could not be compared."""
        return [*sentences(self.steps), *refusal_lines(self.steps)]


@check_types
def history(*filters: str, metric: str | None = None, last: int | None = None) -> History:
    """The runs that match filters such as `"system=notes"` and `"dataset=demo"`, as a history.

    `metric` is accuracy, or recall@10 after `stages=retrieve`; `last` keeps the newest.

    Raises `UserError` if fewer than two runs match, or runs of several systems or data sets do.
    """
    runs = select_runs(filters, last).chosen
    runs = sorted(runs, key=lambda run: run.summary.finished_at)
    summaries = [run.summary for run in runs]
    _check_one("systems", sorted({*map(system_of, summaries)}), "system")
    _check_one("data sets", sorted({summary.dataset for summary in summaries}), "dataset")
    if len(runs) < 2:
        raise UserError("history needs two finished runs, but only one is chosen", EXAMPLE)

    check_records(*runs)
    chosen = metric_named(metric or usual_metric(summaries))
    # The versions, if every run has a different one; else what distinguishes the runs.
    versions = [str(summary.params.get("label", "")) for summary in summaries]
    every_differs = len({*versions, ""}) > len(versions)
    names = versions if every_differs else labels(summaries)
    return History(runs, names, compare_runs(runs, chosen, steps=True))


def _check_one(nouns: str, names: Sequence[str], setting: str) -> None:
    if len(names) > 1:
        shown = ", ".join(one_line(name, 60) for name in names[:MAX_NAMES])
        more = " …" if len(names) > MAX_NAMES else ""
        raise UserError(
            f"history takes one system and one data set, but the runs have {len(names)} {nouns}: "
            f"{shown}{more}",
            f"choose one:  {setting}={one_line(names[0], 60)}",
        )
