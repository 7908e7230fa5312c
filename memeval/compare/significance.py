"""Whether differences are more than chance: p by flipping conversations, and letters."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from memeval.compare.records import SIGNIFICANT, Difference
from memeval.compare.scores import RunScores, cases_of, weights_of
from memeval.statistics.clusters import cluster_sums
from memeval.statistics.flips import flip_and_max_t_ps, max_t_ps
from memeval.statistics.means import mean
from memeval.statistics.multiple import compact_letters

MOST_LETTERED = 20
"""Runs beyond which letters are left out: they rest on all pairs."""

Pair = tuple[int, int]
"""Positions of two runs, the second of which is subtracted."""


def with_ps(
    differences: Sequence[Difference],
    kept: Mapping[Pair, tuple[str, ...]],
    scores: Sequence[RunScores],
) -> list[Difference]:
    """The differences with p, adjusted together, and with what was forced."""
    ps, adjusted = flip_and_max_t_ps(_sums(list(kept), scores))
    tested = []
    for difference, reasons, p, adjusted_p in zip(
        differences, kept.values(), ps, adjusted, strict=True
    ):
        # One conversation has one flip and its opposite: a p of 1 that means nothing.
        has_p = difference.result.groups > 1
        tested.append(
            replace(
                difference,
                p=p if has_p else None,
                adjusted_p=adjusted_p if has_p else None,
                forced=reasons,
            )
        )

    return tested


def letters_of(numbers: Sequence[int], scores: Sequence[RunScores]) -> dict[int, str]:
    """Letters of the runs at these positions, from all their pairs, adjusted together.

    The best run gets the first letter.
    """
    means = {number: _mean(scores[number]) for number in numbers}
    ranked = sorted(numbers, key=lambda number: -means[number])
    if not 1 < len(ranked) <= MOST_LETTERED:
        return {}

    # Against a baseline fewer pairs are adjusted together: a run may differ from it by its p, and
    # yet share its letter.
    pairs = list(combinations(range(len(ranked)), 2))
    adjusted = max_t_ps(_sums([(ranked[high], ranked[low]) for high, low in pairs], scores))
    different = [pair for pair, p in zip(pairs, adjusted, strict=True) if p <= SIGNIFICANT]
    letters = compact_letters(len(ranked), different)

    return dict(zip(ranked, letters, strict=True))


def _mean(scores: RunScores) -> float:
    return mean(scores.values.values(), weights_of(scores, scores.values)) or 0.0


def _sums(pairs: Sequence[Pair], scores: Sequence[RunScores]) -> list[list[float]]:
    """Σ d_i of each conversation, for each pair, the conversations in one order for all."""
    own_sums = [
        cluster_sums(
            list(own.values.values()),
            cases_of(own, own.values),
            weights=weights_of(own, own.values),
        )
        for own in scores
    ]
    rows: list[dict[Hashable, float]] = []
    for first, second in pairs:
        if _are_aligned(scores[first], scores[second]):
            # Sums of differences are differences of sums: 45 pairs of ten runs take no longer than
            # the ten runs.
            less = own_sums[second]
            rows.append({case: total - less[case] for case, total in own_sums[first].items()})
        else:
            rows.append(_common_sums(scores[first], scores[second]))

    cases: dict[Hashable, None] = {}
    for row in rows:
        cases |= dict.fromkeys(row)

    # The same flips for all pairs need a column per conversation, 0 where a pair has none of it.
    return [_in_order(row, cases) for row in rows]


def _in_order(row: Mapping[Hashable, float], cases: Iterable[Hashable]) -> list[float]:
    return [row.get(case, 0.0) for case in cases]


def _are_aligned(scores: RunScores, other: RunScores) -> bool:
    """Whether two runs scored the same questions, with the same weights."""
    if scores.values.keys() != other.values.keys():
        return False

    return weights_of(scores, scores.values) == weights_of(other, scores.values)


def _common_sums(scores: RunScores, other: RunScores) -> dict[Hashable, float]:
    """The sums over the questions that both scored."""
    common = [question for question in scores.values if question in other.values]
    deltas = [scores.values[question] - other.values[question] for question in common]
    return cluster_sums(deltas, cases_of(scores, common), weights=weights_of(scores, common))
