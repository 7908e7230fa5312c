"""Rank groups of the runs of a table, computed with matrices: 200 runs are 19,900 pairs."""

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement, islice
from typing import TYPE_CHECKING, Any

import networkx  # type: ignore[import-untyped]
from msgspec import Struct

from memeval.comparison.protocol import LABELS, MIN_COMMON, reasons_against, reasons_of_run
from memeval.comparison.records import is_significant
from memeval.comparison.scores import AskedQuestion, RunScores
from memeval.comparison.significance import Pair, groups_of
from memeval.metrics.registry import metrics
from memeval.results import NoteKind, RunSummary
from memeval.statistics.clusters import ROUNDING
from memeval.statistics.differences import MIN_CLUSTERS
from memeval.statistics.flips import count_vectors, max_t_ps
from memeval.statistics.multiple import letters_by_item
from memeval.text.shown import some_of

if TYPE_CHECKING:
    from numpy import ndarray

    Matrix = ndarray[Any, Any]

MAX_WORK = 2 * 10**10
"""Products of pairs, conversations and flips beyond which runs are not ranked: half a minute."""
MAX_GROUPS = 200
MAX_NAMED = 3
"""Maximum number of runs that a remark names."""


class RankGroups(Struct, frozen=True):
    """Rank groups of runs, by their position."""

    letters: tuple[str, ...]
    """Empty for a run that was not ranked."""
    remarks: tuple[str, ...]
    """Runs that were not compared or not ranked, with reasons."""


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
        descending = sorted(members, key=lambda number: -values.mean(number))
        pairs = [pair for pair in combinations(descending, 2) if (min(pair), max(pair)) in admitted]
        if values.cases < MIN_CLUSTERS:
            continue
        if len(pairs) * values.cases * count_vectors(values.cases) > MAX_WORK:
            remarks.append(f"{len(descending)} runs have too many pairs to rank")
            continue

        order += descending
        alike.add_nodes_from(descending)
        ps = max_t_ps(values.sums(pairs).tolist())
        for pair, p in zip(pairs, ps, strict=True):
            if not is_significant(p):
                alike.add_edge(*pair)

    letters = [""] * len(scores)
    cliques = list(islice(networkx.find_cliques(alike), MAX_GROUPS + 1))
    if len(cliques) > MAX_GROUPS:
        return RankGroups(tuple(letters), (*remarks, f"More than {MAX_GROUPS} rank groups"))

    position = {number: index for index, number in enumerate(order)}
    groups = [frozenset(map(position.__getitem__, clique)) for clique in cliques]
    for number, text in zip(order, letters_by_item(len(order), groups), strict=True):
        letters[number] = text

    return RankGroups(tuple(letters), tuple(remarks))


class _Values:
    """The values of runs as matrices: a row per run, a column per question."""

    def __init__(self, scores: Sequence[RunScores]) -> None:
        import numpy as np

        asked: dict[str, AskedQuestion] = {}
        for run_scores in scores:
            asked.update(run_scores.questions)

        weights = np.array([question.weight for question in asked.values()])
        self._known = np.empty((len(scores), len(asked)))
        self._weighted = np.empty((len(scores), len(asked)))
        for number, run_scores in enumerate(scores):
            self._known[number] = [name in run_scores.values for name in asked]
            self._weighted[number] = [run_scores.values.get(name, 0.0) for name in asked]

        self._weighted *= weights
        self._means = self._weighted.sum(axis=1) / np.maximum(self._known @ weights, 1e-12)
        columns: dict[str, list[int]] = {}
        for column, question in enumerate(asked.values()):
            columns.setdefault(question.case_id, []).append(column)

        self._columns = list(columns.values())
        self.cases = len(columns)
        self.common = self._known @ self._known.T
        """Questions that both runs of a pair scored."""

    def mean(self, number: int) -> float:
        """Mean of a run over the questions that it scored."""
        return float(self._means[number])

    def sums(self, pairs: Sequence[tuple[int, int]]) -> "Matrix":
        """Σ d of each conversation, for each pair, over the questions that both scored."""
        import numpy as np

        firsts, seconds = np.array(pairs).T
        sums = np.empty((len(pairs), self.cases))
        for case, columns in enumerate(self._columns):
            totals = self._weighted[:, columns] @ self._known[:, columns].T
            sums[:, case] = totals[firsts, seconds] - totals[seconds, firsts]

        # Equal sums of thirds, as over three repeats, differ in the last digit.
        sums[np.abs(sums) < ROUNDING] = 0.0
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
        first, second = kinds[pair[0]][0], kinds[pair[1]][0]
        notes = reasons_against(
            (summaries[first], scores[first]), (summaries[second], scores[second]), metric
        )
        runs = {*kinds[pair[0]], *kinds[pair[1]]}
        ignored = {NoteKind.COMMON}
        if len(runs) == 1 or not scores[first].values:
            ignored.add(NoteKind.JUDGE)  # there are no two runs, or no verdicts, to compare

        reasons = dict.fromkeys(note.text for note in notes if note.kind not in ignored)
        against[frozenset(pair)] = tuple(reasons)

    kind_of: dict[int, int] = {}
    named: dict[int, list[str]] = {}
    for kind, of_kind in kinds.items():
        kind_of |= dict.fromkeys(of_kind, kind)
        named[kind] = [names[number] for number in of_kind]

    admitted: dict[Pair, None] = {}
    for pair in combinations(range(len(scores)), 2):
        reasons_of_pair = against[frozenset(map(kind_of.__getitem__, pair))]
        if not reasons_of_pair and values.common[pair] >= MIN_COMMON:
            admitted[pair] = None

    return admitted, list(_refusal_lines(against, named))


def _alike_runs(
    summaries: Sequence[RunSummary], scores: Sequence[RunScores]
) -> dict[int, list[int]]:
    """Groups of runs, by number, that may be compared with the same other runs."""
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for number, (summary, run_scores) in enumerate(zip(summaries, scores, strict=True)):
        # A run that may not be compared with any other has its own group.
        reasons = tuple(note.text for note in reasons_of_run(summary, metrics()["accuracy"]))
        like = number
        for others in kinds.values():
            if scores[others[0]].questions == run_scores.questions:
                like = others[0]
                break

        judge = summary.judge and summary.judge.digest
        labels = summary.params.get(LABELS, "")
        data = summary.dataset, summary.data_sha256
        kinds.setdefault((*data, like, judge, labels, reasons), []).append(number)

    return dict(enumerate(kinds.values()))


def _refusal_lines(
    against: dict[frozenset[int], tuple[str, ...]], names: dict[int, list[str]]
) -> Iterator[str]:
    for kinds, reasons in against.items():
        # Reasons that concern one run alone are reported once.
        alone: set[str] = set()
        if len(kinds) > 1:
            for kind in kinds:
                alone.update(against[frozenset({kind})])

        common = [text for text in reasons if text not in alone]
        if common:
            whose = " with ".join(some_of(names[kind], MAX_NAMED) for kind in sorted(kinds))
            yield f"not compared: {whose}: {'; '.join(common)}"
