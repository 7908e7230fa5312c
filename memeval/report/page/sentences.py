"""What a page says first, where no comparison says it."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.metrics.formats import count, percent, with_interval
from memeval.report.page.data import CellData
from memeval.report.page.runs import PageRun


def sentences(cells: Sequence[CellData], runs: Sequence[PageRun]) -> tuple[str, ...]:
    """One or two sentences on one run, or on several that nothing has compared."""
    if len(cells) == 1:
        return tuple(filter(None, [_result(cells[0], runs[0]), _evidence(cells[0])]))

    ranked = [cell for cell in cells if cell.accuracy.value is not None]
    if not ranked:
        return (f"{len(cells)} runs; none has an accuracy.",)

    best = max(ranked, key=lambda cell: cell.accuracy.value or 0.0)
    return (
        f"{best.label} has the highest accuracy of {len(cells)} runs, {_share(best)} %.",
        "Whether it is higher by more than chance is not tested here.",
    )


def _result(cell: CellData, run: PageRun) -> str:
    """How much of what was right, over how many conversations, and who says so."""
    questions = count(cell.figures.get("n_questions"))
    if cell.accuracy.value is None:
        return f"None of the {questions} questions could be scored."

    cases = {rows[0].case_id for rows in run.records.values() if run.counts(rows[0])}
    where = f" on {len(cases):,} conversations" if len(cases) > 1 else ""
    by = f" by the judge {cell.judge}" if cell.judge else ""
    repeats = f", mean of {cell.repeats} repeats" if cell.repeats > 1 else ""

    return f"{_share(cell)} % of {questions} questions{where} are answered right{by}{repeats}."


def _share(cell: CellData) -> str:
    return with_interval(cell.accuracy.value, cell.accuracy.low, cell.accuracy.high)


def _evidence(cell: CellData) -> str:
    """How much of the evidence the system finds."""
    recall = cell.figures.get("recall_at_10")
    if recall is None:
        return ""

    return f"Of the evidence, {percent(recall)} % is among the first 10 chunks that it shows."
