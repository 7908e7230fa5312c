"""Figures about the items that systems store; not measured unless a system lists them (`dump`)."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from memeval.metrics.formats import decimals
from memeval.metrics.metric import PAGE, REPORT, SHOW, Metric, Unit, interval_figures, percent_of
from memeval.results.rows import StoredItems
from memeval.statistics.means import scored_mean

PER_TURN, REPEATED = "stored_items_per_turn", "stored_repeated"
WITHOUT_FACT, GROWTH = "stored_without_fact", "stored_growth"
SHARES: dict[str, Callable[[StoredItems], tuple[int, int]]] = {
    REPEATED: lambda stored: (stored.repeated, stored.items),
    WITHOUT_FACT: lambda stored: (stored.without_fact, stored.items),
    GROWTH: lambda stored: (stored.late, stored.placed),
}
"""For each share, the number of items that count, and of all items."""
_two_decimals = partial(decimals, digits=2)


def stored_measures(stored: Iterable[tuple[str, int, StoredItems]]) -> dict[str, float | None]:
    """The figures of memories, each given with the id of its case and a seed; empty without any.

    Of a case with checkpoints, the memory that has ingested the most turns counts. A share is over
    all items of all cases, with a 95 % interval clustered by case; several seeds are one cluster.
    """
    latest: dict[tuple[str, int], StoredItems] = {}
    for case, seed, sizes in sorted(stored, key=lambda row: (row[2].turns, row[2].items)):
        latest[case, seed] = sizes

    turns = items = 0
    for sizes in latest.values():
        turns += sizes.turns
        items += sizes.items

    if not turns:
        return {}

    measures: dict[str, float | None] = {PER_TURN: items / turns}
    for name, counts in SHARES.items():
        parts, wholes = Counter[str](), Counter[str]()
        for (case, _), sizes in latest.items():
            part, whole = counts(sizes)
            parts[case] += part
            wholes[case] += whole

        values, cases, weights = [], [], []
        for case, whole in wholes.items():
            if whole:
                values.append(parts[case] / whole)
                cases.append(case)
                weights.append(float(whole))

        measures |= interval_figures(name, scored_mean(values, cases, weights))

    return measures


def _metric(name: str, title: str, hint: str) -> Metric:
    return Metric(
        name,
        more_is_better=False,
        columns={PAGE: title},
        lines={SHOW: title, REPORT: title},
        texts=dict.fromkeys((SHOW, REPORT), partial(percent_of, name)),
        optional=(SHOW, REPORT),
        hint=hint,
    )


METRICS = (
    Metric(
        PER_TURN,
        Unit("items per turn", short=_two_decimals, full=_two_decimals),
        more_is_better=False,
        columns={PAGE: "stored per turn"},
        lines={SHOW: "stored per turn", REPORT: "stored per turn"},
        optional=(SHOW, REPORT),
        hint="items that the memory wrote, per turn of the conversation",
    ),
    _metric(REPEATED, "stored twice", "items that repeat another item word for word"),
    _metric(WITHOUT_FACT, "stored without a fact", "items without a rare word of the conversation"),
    _metric(GROWTH, "stored late", "items from the second half of the turns"),
)
