"""The differences of comparisons as the table of a paper."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.comparison.paper.records import PaperCell, PaperColumn, PaperTable
from memeval.comparison.records import Comparison, Difference
from memeval.comparison.sentences import interval
from memeval.comparison.tables import SAME, pair_label
from memeval.comparison.words import legend
from memeval.metrics.formats import count, figure, probability


def difference_table(comparisons: Sequence[Comparison]) -> PaperTable:
    """A row per difference: size with interval, p, adjusted p, and the detectable difference."""
    names: list[tuple[str, ...]] = []
    columns: dict[str, list[PaperCell]] = {title: [] for title in ("n", "Δ", "p", "adj.", "MDE")}
    notes: list[str] = []
    for comparison in comparisons:
        notes += filter(None, [comparison.warning, *legend(comparison)])
        for difference in comparison.differences:
            pair = pair_label(comparison, difference)
            names.append((f"{comparison.metric}, {comparison.unit}", pair))
            size, mde = difference.result.count, difference.result.mde
            columns["n"].append(PaperCell(size, count(size)))
            columns["Δ"].append(_delta(comparison, difference))
            columns["p"].append(_probability(difference.p))
            columns["adj."].append(_probability(difference.adjusted_p))
            columns["MDE"].append(PaperCell(mde, figure(mde, comparison.unit)))

    return PaperTable(
        headings=("metric", "run"),
        names=tuple(names),
        columns=tuple(PaperColumn(title, title, tuple(own)) for title, own in columns.items()),
        flags=((),) * len(names),
        notes=tuple(dict.fromkeys(notes)),
        caption="Differences between runs.",
        label="tab:differences",
    )


def _delta(comparison: Comparison, difference: Difference) -> PaperCell:
    result, unit = difference.result, comparison.unit
    # 0.0 would look like something that was measured.
    if difference.same_prompts:
        return PaperCell(None, SAME)

    return PaperCell(
        value=result.mean,
        low=result.low,
        high=result.high,
        text=figure(result.mean, unit, signed=True),
        interval=interval(result, unit),
    )


def _probability(p: float | None) -> PaperCell:
    return PaperCell(p, probability(p))
