"""Rank groups of the runs of a table, computed with matrices: 200 runs are 19,900 pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement, islice
from typing import TYPE_CHECKING, Any

import networkx  # type: ignore[import-untyped]
from msgspec import Struct

from memeval.comparison.protocol import MIN_COMMON, MIN_COVERAGE, reasons_against
from memeval.comparison.records import is_significant
from memeval.comparison.scores import RunScores
from memeval.comparison.significance import Pair, groups_of
from memeval.metrics.registry import metrics
from memeval.results import NoteKind, RunSummary
from memeval.statistics.differences import FEWEST_CLUSTERS
from memeval.statistics.flips import count_vectors, max_t_ps
from memeval.statistics.multiple import letters_by_item
from memeval.text.shown import some_of

if TYPE_CHECKING:
    from numpy import ndarray

    Matrix = ndarray[Any, Any]

MOST_WORK = 2 * 10**10
"""Products of pairs, conversations and flips beyond which runs are not ranked: half a minute."""
MOST_GROUPS = 200
MOST_NAMED = 3
"""Maximum number of runs that a remark names."""


class RankGroups(Struct, frozen=True):
    """Rank groups of runs, by their position."""

    letters: tuple[str, ...]
    """Empty for a run that was not ranked."""
    remarks: tuple[str, ...]
    """Which runs were not compared or not ranked, and why."""


def rank_runs(
    summaries: Sequence[RunSummary], scores: Sequence[RunScores], names: Sequence[str]
) -> RankGroups:
    """Letters of runs: those that share one can't be told apart, by max-T over all pairs of
    comparable runs, the best run first.
    """
    values = _Values(scores)
    admitted, remarks = _comparable_pairs(summaries, scores, names, values)
    alike, order = networkx.Graph(), list[int]()
    for members in groups_of(admitted):
        own = sorted(members, key=lambda number: -values.mean(number))
        pairs = [pair for pair in combinations(own, 2) if _sorted(pair) in admitted]
        if values.cases < FEWEST_CLUSTERS:
            continue
        if len(pairs) * values.cases * count_vectors(values.cases) > MOST_WORK:
            remarks.append(f"{len(own)} runs have too many pairs to rank")
            continue

        order += own
        alike.add_nodes_from(own)
        ps = max_t_ps(values.sums(pairs).tolist())
        alike.add_edges_from(
            pair for pair, p in zip(pairs, ps, strict=True) if not is_significant(p)
        )

    place = {number: index for index, number in enumerate(order)}
    cliques = list(islice(networkx.find_cliques(alike), MOST_GROUPS + 1)) if order else []
    if len(cliques) > MOST_GROUPS:
        return RankGroups(("",) * len(scores), (*remarks, f"More than {MOST_GROUPS} rank groups"))

    letters = letters_by_item(
        len(order), [frozenset(map(place.__getitem__, one)) for one in cliques]
    )
    by_number = dict(zip(order, letters, strict=True))
    return RankGroups(
        tuple(by_number.get(number, "") for number in range(len(scores))), tuple(remarks)
    )


class _Values:
    """The values of runs as matrices: a row per run, a column per question."""

    def __init__(self, scores: Sequence[RunScores]) -> None:
        import numpy as np

        asked = {name: one for own in scores for name, one in own.questions.items()}
        weights = np.array([one.weight for one in asked.values()])
        self._known = np.array(
            [[name in own.values for name in asked] for own in scores], dtype=float
        )
        self._weighted = weights * np.array(
            [[own.values.get(name, 0.0) for name in asked] for own in scores]
        )
        self._means = self._weighted.sum(axis=1) / np.maximum(self._known @ weights, 1e-12)
        columns: dict[str, list[int]] = {}
        for column, one in enumerate(asked.values()):
            columns.setdefault(one.case_id, []).append(column)

        self._columns = list(columns.values())
        self.cases = len(columns)
        self.common = self._known @ self._known.T
        """Questions that both runs of a pair scored."""

    def mean(self, number: int) -> float:
        """Mean of a run over the questions that it scored."""
        return float(self._means[number])

    def sums(self, pairs: Sequence[tuple[int, int]]) -> Matrix:
        """Σ d of each conversation, for each pair, over the questions that both scored."""
        import numpy as np

        firsts, seconds = np.array(pairs).T
        sums = np.empty((len(pairs), self.cases))
        for case, columns in enumerate(self._columns):
            totals = self._weighted[:, columns] @ self._known[:, columns].T
            sums[:, case] = totals[firsts, seconds] - totals[seconds, firsts]

        return sums


def _comparable_pairs(
    summaries: Sequence[RunSummary],
    scores: Sequence[RunScores],
    names: Sequence[str],
    values: _Values,
) -> tuple[dict[Pair, None], list[str]]:
    """The pairs that may be compared, and remarks on the others."""
    kinds = _alike_runs(summaries, scores)
    against: dict[frozenset[int], tuple[str, ...]] = {}
    metric = metrics()["accuracy"]
    for pair in combinations_with_replacement(kinds, 2):
        one, other = (kinds[kind][0] for kind in pair)
        notes = reasons_against(
            (summaries[one], scores[one]), (summaries[other], scores[other]), metric
        )
        reasons = tuple(note.text for note in notes if note.kind is not NoteKind.COMMON)
        against[frozenset(pair)] = tuple(dict.fromkeys(reasons))

    kind_of = {number: kind for kind, own in kinds.items() for number in own}
    admitted = [
        pair
        for pair in combinations(range(len(scores)), 2)
        if not against[frozenset(map(kind_of.__getitem__, pair))]
        and values.common[pair] >= MIN_COMMON
    ]
    named = {kind: [names[number] for number in own] for kind, own in kinds.items()}
    return dict.fromkeys(admitted), list(_refusal_lines(against, named))


def _sorted(pair: Pair) -> Pair:
    return (min(pair), max(pair))


def _alike_runs(
    summaries: Sequence[RunSummary], scores: Sequence[RunScores]
) -> dict[int, list[int]]:
    """Groups of runs, by number, that may be compared with the same other runs."""
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for number, (summary, own) in enumerate(zip(summaries, scores, strict=True)):
        coverage = summary.metrics.get("coverage")
        is_covered = coverage is not None and coverage >= MIN_COVERAGE
        like = next(
            (other[0] for other in kinds.values() if scores[other[0]].questions == own.questions),
            number,
        )
        judge = None if summary.judge is None else summary.judge.digest
        labels = summary.params.get("dataset.labels", "")
        data = summary.dataset, summary.data_sha256
        covered = is_covered or (coverage, summary.name)
        kinds.setdefault((*data, like, judge, labels, covered), []).append(number)

    return dict(enumerate(kinds.values()))


def _refusal_lines(
    against: dict[frozenset[int], tuple[str, ...]], names: dict[int, list[str]]
) -> Iterator[str]:
    for kinds, reasons in against.items():
        # Objections to a run itself are reported once.
        alone = {text for kind in kinds if len(kinds) > 1 for text in against[frozenset({kind})]}
        common = [text for text in reasons if text not in alone]
        if common:
            whose = " with ".join(some_of(names[kind], MOST_NAMED) for kind in sorted(kinds))
            yield f"not compared: {whose}: {'; '.join(common)}"
