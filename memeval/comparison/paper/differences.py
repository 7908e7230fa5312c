"""The differences of comparisons as the table of a paper."""

from collections.abc import Sequence

from memeval.comparison.paper.records import NOT_MEASURED, PaperCell, PaperColumn, PaperTable
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
            size = difference.result.count
            columns["n"].append(PaperCell(size, count(size)))
            for title, cell in _difference_cells(comparison, difference).items():
                columns[title].append(cell)

    return PaperTable(
        headings=("metric", "run"),
        names=tuple(names),
        columns=tuple(PaperColumn(title, title, tuple(cells)) for title, cells in columns.items()),
        flags=((),) * len(names),
        notes=tuple(dict.fromkeys(notes)),
        caption="Differences between runs.",
        label="tab:differences",
    )


def _difference_cells(comparison: Comparison, difference: Difference) -> dict[str, PaperCell]:
    result, unit = difference.result, comparison.unit
    # 0.0 would look like something that was measured.
    if difference.same_prompts:
        return {"Δ": PaperCell(None, SAME)} | dict.fromkeys(("p", "adj.", "MDE"), NOT_MEASURED)

    delta = PaperCell(
        value=result.mean,
        low=result.low,
        high=result.high,
        text=figure(result.mean, unit, signed=True),
        interval=interval(result, unit),
    )
    mark = "*" if result.mde_from_independent else ""
    return {
        "Δ": delta,
        "p": PaperCell(difference.p, probability(difference.p)),
        "adj.": PaperCell(difference.adjusted_p, probability(difference.adjusted_p)),
        "MDE": PaperCell(result.mde, figure(result.mde, unit) + mark),
    }
