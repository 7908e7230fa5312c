"""Sentences at the top of a page without a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.metrics.formats import percent
from memeval.report.page.data import CellData
from memeval.report.page.runs import PageRun
from memeval.report.sentences import run_sentences


def sentences(cells: Sequence[CellData], runs: Sequence[PageRun]) -> tuple[str, ...]:
    """One or two sentences on one run, or on several that nothing has compared."""
    if len(cells) == 1:
        return tuple(run_sentences(runs[0].summary, _conversations(runs[0])))

    ranked = [cell for cell in cells if cell.accuracy.value is not None]
    if not ranked:
        return (f"{len(cells)} runs; none has an accuracy.",)

    best = max(ranked, key=lambda cell: cell.accuracy.value or 0.0)
    return (
        f"{best.label} has the highest accuracy of {len(cells)} runs, "
        f"{percent(best.accuracy.value)} %.",
        "Whether it is higher by more than chance is not tested here.",
    )


def _conversations(run: PageRun) -> int:
    """Of the questions that the accuracy is made of."""
    return len({rows[0].case_id for rows in run.records.values() if run.counts(rows[0])})
