"""Significance of differences: adjusted p by flipping conversations, and letters."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import TypeVar

from memeval.comparison.records import (
    BENJAMINI_HOCHBERG,
    Comparison,
    Difference,
    are_too_few,
    is_significant,
)
from memeval.comparison.scores import RunScores, cases_of, deltas_of, weights_of
from memeval.statistics.clusters import cluster_sums
from memeval.statistics.flips import max_t_ps
from memeval.statistics.multiple import benjamini_hochberg, compact_letters

MAX_LETTERED = 20
"""Maximum runs with letters, unless all pairs were compared anyway: letters need all pairs."""

Pair = tuple[int, int]
"""Positions of two runs; the second is subtracted."""
Name = TypeVar("Name", bound=Hashable)


def adjusted(
    differences: Mapping[Pair, Difference], scores: Sequence[RunScores]
) -> dict[Pair, Difference]:
    """The differences, each p adjusted over all those in its group of runs: see `groups_of`."""
    tested = dict(differences)
    for group in groups_of(differences):
        pairs = [pair for pair in differences if pair[0] in group]
        for pair, p in zip(pairs, max_t_ps(_sums(pairs, scores)), strict=True):
            difference = differences[pair]
            # If flips are drawn, not enumerated, the adjusted p may be a little below p itself.
            adjusted_p = None if difference.p is None else max(p, difference.p)
            tested[pair] = replace(difference, adjusted_p=adjusted_p, among=len(pairs))

    return tested


def groups_of(pairs: Iterable[tuple[Name, Name]]) -> list[frozenset[Name]]:
    """Groups of runs, by position or key, that are connected by compared pairs."""
    groups: list[frozenset[Name]] = []
    for pair in pairs:
        joined, apart = [], []
        for group in groups:
            if group.isdisjoint(pair):
                apart.append(group)
            else:
                joined.append(group)

        groups = [*apart, frozenset(pair).union(*joined)]

    return groups


def letters_of(
    differences: Mapping[Pair, Difference],
    scores: Sequence[RunScores],
    may_be_compared: Callable[[int, int], bool],
) -> dict[int, str]:
    """Letters of the compared runs by their position: those that share one can't be told apart.

    A pair in `differences` differs exactly if its sentence says so. The other pairs of a group,
    which only letters need, are adjusted together. Runs that may not be compared share no letter,
    and a group in which no difference could be shown has no letters. The best run of a group comes
    first.
    """
    groups = []
    for members in groups_of(differences):
        of_group = [row for pair, row in differences.items() if pair[0] in members]
        if not are_too_few(of_group):
            groups.append(sorted(members, key=lambda number: -(scores[number].mean or 0.0)))

    ranked = list(chain.from_iterable(groups))
    if len(ranked) < 2:
        return {}

    if len(ranked) > MAX_LETTERED:
        for pair in chain.from_iterable(combinations(group, 2) for group in groups):
            is_compared = pair in differences or pair[::-1] in differences
            if not is_compared and may_be_compared(*pair):
                return {}

    different = set(combinations(ranked, 2))
    for group in groups:
        pairs = [pair for pair in combinations(group, 2) if may_be_compared(*pair)]
        different.difference_update(_alike_pairs(pairs, differences, scores))

    position = {number: index for index, number in enumerate(ranked)}
    apart = [(position[high], position[low]) for high, low in sorted(different)]
    return dict(zip(ranked, compact_letters(len(ranked), apart), strict=True))


def _alike_pairs(
    pairs: Sequence[Pair], differences: Mapping[Pair, Difference], scores: Sequence[RunScores]
) -> list[Pair]:
    """The pairs of one group that can't be told apart."""
    compared = {pair: differences.get(pair) or differences.get(pair[::-1]) for pair in pairs}
    ps: Sequence[float] = []
    if not all(compared.values()):
        ps = max_t_ps(_sums(pairs, scores))

    alike = []
    for index, pair in enumerate(pairs):
        difference = compared[pair]
        is_apart = difference.is_shown if difference is not None else is_significant(ps[index])
        if not is_apart:
            alike.append(pair)

    return alike


def _sums(pairs: Sequence[Pair], scores: Sequence[RunScores]) -> list[list[float]]:
    """Σ d_i of each conversation, for each pair, the conversations in one order for all."""
    run_sums = []
    for run_scores in scores:
        scored = run_scores.values
        cases, weights = cases_of(run_scores, scored), weights_of(run_scores, scored)
        run_sums.append(cluster_sums(list(scored.values()), cases, weights=weights))

    rows: list[dict[Hashable, float]] = []
    for first, second in pairs:
        run_scores, other = scores[first], scores[second]
        if _are_aligned(run_scores, other):
            # Sums of differences are differences of sums: 45 pairs of ten runs take no longer than
            # the ten runs.
            sums, subtracted = run_sums[first], run_sums[second]
            values = [*sums.values(), *(-total for total in subtracted.values())]
            rows.append(cluster_sums(values, [*sums, *subtracted]))
        else:
            common = run_scores.common(other)
            deltas = deltas_of(run_scores.values, other.values, common)
            cases, weights = cases_of(run_scores, common), weights_of(run_scores, common)
            rows.append(cluster_sums(deltas, cases, weights=weights))

    # Flips shared by all pairs need a column per conversation, 0 if a pair has no question of it.
    no_sums: dict[Hashable, float] = {}
    for row in rows:
        no_sums |= dict.fromkeys(row, 0.0)

    return [list((no_sums | row).values()) for row in rows]


def _are_aligned(scores: RunScores, other: RunScores) -> bool:
    """Whether two runs scored the same questions of the same cases, with the same weights."""
    names = scores.values
    if names.keys() != other.values.keys():
        return False

    return all(of(scores, names) == of(other, names) for of in (cases_of, weights_of))


def adjust_by_discovery(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons, each p adjusted over the differences of all of them (Benjamini-Hochberg).

    Letters are left out: they are based on max-T over the pairs of one metric.
    """
    # The raw p, because those of max-T are already adjusted. A single conversation has none.
    known: list[float] = []
    for comparison in comparisons:
        known += [row.p for row in comparison.differences if row.p is not None]

    adjusted = iter(benjamini_hochberg(known))
    adjusted_comparisons = []
    for comparison in comparisons:
        differences = list(comparison.differences)
        for index, row in enumerate(differences):
            if row.p is not None:
                differences[index] = replace(row, adjusted_p=next(adjusted), among=len(known))

        changed = replace(
            comparison,
            differences=tuple(differences),
            runs=tuple(replace(run, letters="") for run in comparison.runs),
            adjustment=BENJAMINI_HOCHBERG,
            tests=len(known),
        )
        adjusted_comparisons.append(changed)

    return adjusted_comparisons
