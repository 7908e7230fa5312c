"""BEAM's scores, from a judge's findings about each item of a rubric and each line of an answer.

Source: Tavakoli et al., ICLR 2026, compute_metrics.py and report_results.py at commit b2a3ee8.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import sqrt

from memeval.results import Record
from memeval.statistics.means import mean

EVENT_ORDERING = "event_ordering"
ITEMS, ORDER = "items", "order"
"""Parts of a verdict: the score of each item, and the event of each line (see `line_events`)."""
VERSIONS = ("v1", "v2")


def rubric_score(scores: Sequence[float], version: str) -> float:
    """Mean score of the items of a rubric, each 0, 0.5 or 1.

    `v1` truncates each score to an integer, so that half credit counts as 0. `v2` keeps it.
    """
    # The published table was most likely made with v1: all 84 figures of abstention and
    # contradiction resolution are whole multiples of 1 / items. v2 dates from 30 August 2026.
    if version == "v1":
        scores = list(map(int, scores))

    return sum(scores) / len(scores)


def line_events(
    lines: Sequence[str], matches: Sequence[int | None], rubric: Sequence[str]
) -> tuple[int, ...]:
    """The event of each line of an answer, as a number.

    A line that matches an item has the item's position. A line without a match has the number of
    its text: the position of an item with the same text, else the next unused number, starting at
    the number of items. Equal texts have the same number.
    """
    numbers: dict[str, int] = {}
    for number, text in enumerate(rubric):
        numbers.setdefault(text, number)

    events = []
    new = len(rubric)
    for line, match in zip(lines, matches, strict=True):
        if match is not None:
            events.append(match)
            continue

        if line not in numbers:
            numbers[line] = new
            new += 1

        events.append(numbers[line])

    return tuple(events)


def tau_norm(events: Sequence[int], items: int) -> float:
    """Kendall's tau-b between the order of a rubric and that of an answer's lines, as (τ + 1)/2.

    Both orders rank the union: the items, then the events that only the answer has. An event's rank
    is its last position in the order; a missing event ranks after the whole union. A single event
    that is in both orders has no τ, and counts as 1; ranks that are all ties count as τ = 0.
    """
    union = [*range(items), *sorted({event for event in events if event >= items})]
    missing = len(union) + 1
    ranks = {event: position for position, event in enumerate(events, start=1)}
    first = [*range(1, items + 1), *[missing] * (len(union) - items)]
    second = [ranks.get(event, missing) for event in union]

    if len(union) == 1:
        return 1.0

    return ((tau_b(first, second) or 0.0) + 1) / 2


def tau_b(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Kendall's tau-b of two rankings of the same things; None if one of them is all ties.

    τ = (concordant - discordant) / sqrt(pairs not tied in the first · pairs not tied in the
    second).
    """
    balance = untied_first = untied_second = 0
    for (a, x), (b, y) in combinations(zip(first, second, strict=True), 2):
        balance += _sign(a - b) * _sign(x - y)
        untied_first += a != b
        untied_second += x != y

    if not untied_first or not untied_second:
        return None

    return balance / sqrt(untied_first * untied_second)


def _sign(difference: float) -> int:
    return (difference > 0) - (difference < 0)


def order_f1(events: Sequence[int], items: int) -> float:
    """F1 of precision (share of an answer that is items) and recall (share of items with a line).

    A repeated item counts once; each line that is not an item counts, even if it is repeated.
    """
    items_named = len({event for event in events if event < items})
    other_lines = sum(event >= items for event in events)
    if not items_named:
        return 0.0

    precision, recall = items_named / (items_named + other_lines), items_named / items
    return 2 * precision * recall / (precision + recall)


def empty_floor(items: int) -> float:
    """Value of `tau_norm` for an empty answer, and for any single line without a match.

    (1 - sqrt(2 / (n + 1))) / 2 for n items.
    """
    return (1 - sqrt(2 / (items + 1))) / 2


def official_measures(
    records: Sequence[Record], items_of: Mapping[str, int]
) -> dict[str, float | None]:
    """Figures of the official scorer: the mean over the abilities under both of its versions, its
    scores of event ordering, and the event-ordering score of an empty answer for comparison.

    `items_of` has the number of rubric items by question. Only verdicts of judge=beam have parts to
    compute scores from; the floor needs no judge.
    """
    ordering: list[Record] = []
    floors: dict[str, float] = {}
    for record in records:
        if record.category == EVENT_ORDERING:
            ordering.append(record)
            if record.question_id in items_of:
                floors[record.question_id] = empty_floor(items_of[record.question_id])

    measures: dict[str, float | None] = {}
    if any(record.verdict and ITEMS in record.verdict.parts for record in records):
        for version in VERSIONS:
            measures[f"beam_{version}"] = _mean_of_abilities(records, floors, version)

        for name, score in ORDERING.items():
            measures[f"event_ordering_{name}"] = mean(
                _of_order(record, score) for record in ordering
            )

        measures["event_ordering_tau"] = mean(_tau(record, floors) for record in ordering)

    if floors:
        # Reported with the score, because tau_norm rewards empty answers: all 48 published figures
        # of event ordering are below the score of one.
        measures["event_ordering_floor"] = mean(floors.values())

    return measures


def _mean_of_abilities(
    records: Iterable[Record], floors: Mapping[str, float], version: str
) -> float | None:
    """Plain mean over the abilities of the mean of their questions."""
    by_ability: dict[str, list[float | None]] = {}
    for record in records:
        if record.category == EVENT_ORDERING:
            score = _tau(record, floors)
        else:
            score = _rubric(record, version)

        by_ability.setdefault(str(record.category), []).append(score)

    # All abilities have equal weight, as in all 48 columns of the paper's table.
    return mean(map(mean, by_ability.values()))


def _rubric(record: Record, version: str) -> float | None:
    if record.score is None or record.verdict is None:
        return None

    scores = record.verdict.parts.get(ITEMS)
    # A blank answer has no parts, because no judge was called for it.
    return rubric_score(scores, version) if scores else record.verdict.score


def _tau(record: Record, floors: Mapping[str, float]) -> float | None:
    return _of_order(record, tau_norm, floors.get(record.question_id))


def _of_order(
    record: Record, score: Callable[[Sequence[int], int], float], of_blank: float | None = 0.0
) -> float | None:
    if record.score is None or record.verdict is None:
        return None

    parts = record.verdict.parts
    if ORDER not in parts:
        return of_blank

    return score(list(map(int, parts[ORDER])), len(parts[ITEMS]))


def _final(events: Sequence[int], items: int) -> float:
    return tau_norm(events, items) * order_f1(events, items)


ORDERING: dict[str, Callable[[Sequence[int], int], float]] = {"f1": order_f1, "final": _final}
"""Scores that the official scorer stores for event ordering, but does not report. A blank answer
gets 0.
"""
MEASURES = (
    *(f"beam_{version}" for version in VERSIONS),
    *(f"event_ordering_{name}" for name in ORDERING),
    "event_ordering_tau",
    "event_ordering_floor",
)
"""Names of `official_measures`."""
