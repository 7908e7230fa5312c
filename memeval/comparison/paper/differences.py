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
    counts: list[PaperCell] = []
    deltas: list[PaperCell] = []
    alone: list[PaperCell] = []
    adjusted: list[PaperCell] = []
    detectable: list[PaperCell] = []
    for comparison in comparisons:
        for difference in comparison.differences:
            pair = pair_label(comparison, difference)
            names.append((f"{comparison.metric}, {comparison.unit}", pair))
            size = difference.result.count
            counts.append(PaperCell(size, None, None, count(size)))
            deltas.append(_delta(comparison, difference))
            alone.append(_probability(difference.p))
            adjusted.append(_probability(difference.adjusted_p))
            mde = difference.result.mde
            detectable.append(PaperCell(mde, None, None, figure(mde, comparison.unit)))

    notes: list[str] = []
    for comparison in comparisons:
        notes += [comparison.warning] if comparison.warning else []
        notes += legend(comparison)

    columns = {"n": counts, "Δ": deltas, "p": alone, "adj.": adjusted, "MDE": detectable}
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
        return PaperCell(None, None, None, SAME)

    return PaperCell(
        value=result.mean,
        low=result.low,
        high=result.high,
        text=figure(result.mean, unit, signed=True),
        interval=interval(result, unit),
    )


def _probability(p: float | None) -> PaperCell:
    return PaperCell(p, None, None, probability(p))
