"""LongMemEval's own figures: retrieval metrics as its code computes them, which differ from the
textbook's.

Source: Wu et al., ICLR 2025, src/retrieval/eval_utils.py. Documents are user turns, or sessions as
their user turns; those with a flagged turn are relevant. Questions that are unanswerable, or flag
no user turn, are left out of the means.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import log2

from memeval.datasets.grouping import group
from memeval.results import Record
from memeval.statistics.means import mean

CUTOFFS = (1, 3, 5, 10, 30, 50)
PREFIX = "official/"


def official_dcg(ranks: Iterable[int]) -> float:
    """Gain of relevant documents at 1-based ranks: 1 at the first, then 1 / log2(rank), so that the
    first two ranks gain the same.
    """
    # The textbook's gain is 1 / log2(rank + 1). The published code divides by log2(rank) starting
    # at the second rank.
    return sum(1 / log2(max(rank, 2)) for rank in ranks)


def official_ndcg(ranks: Iterable[int], relevant: int, k: int) -> float:
    """Gain of the relevant documents within k, divided by that of `relevant` documents at the first
    ranks; 0.0 if nothing is relevant.
    """
    ideal = official_dcg(range(1, min(relevant, k) + 1))
    if not ideal:
        return 0.0

    return official_dcg(rank for rank in ranks if rank <= k) / ideal


def official_metrics(
    ranking: Sequence[Sequence[str]], evidence: Sequence[str], session_of: Mapping[str, str]
) -> dict[str, float | None]:
    """The official metrics of one question, `official/<documents>/<metric>_at_<k>`; empty if chunks
    are neither turns nor sessions.

    `ranking` holds the turn ids of each chunk, best first; `session_of` maps every turn of the case
    to its session. A metric is None if the ranking ends before k. A ranking of turns is also
    measured by sessions: see `sessions_of_turns`.
    """
    if not ranking:
        return {}

    if all(len(turn_ids) == 1 for turn_ids in ranking):
        turns = list(chain.from_iterable(ranking))
        relevant = set(evidence)
        by_turn = _documents(name="turn", ranked=turns, relevant=relevant, corpus=len(session_of))
        return by_turn | sessions_of_turns(turns, relevant, session_of)

    sessions = group((session, turn) for turn, session in session_of.items())
    ranked = []
    for turn_ids in ranking:
        session = session_of[turn_ids[0]] if turn_ids else ""
        if sorted(turn_ids) != sorted(sessions.get(session, ())):
            return {}

        ranked.append(session)

    relevant = {session_of[turn] for turn in evidence}
    return _documents(name="session", ranked=ranked, relevant=relevant, corpus=len(sessions))


def _documents(
    name: str, ranked: Sequence[str], relevant: set[str], corpus: int
) -> dict[str, float | None]:
    """recall_any, recall_all and ndcg_any at every cutoff; None if the ranking ends before it."""
    ranks = _ranks_of(ranked, relevant)
    metrics: dict[str, float | None] = {}
    for k in CUTOFFS:
        if len(ranked) < min(k, corpus):
            metrics |= _by_metric(name, k)
            continue

        within = bisect_right(ranks, k)
        ndcg = official_ndcg(ranks, len(relevant), k)
        values = (float(within > 0), float(within == len(relevant)), ndcg)
        metrics |= _by_metric(name, k, values)

    return metrics


def sessions_of_turns(
    ranked: Sequence[str], relevant: set[str], session_of: Mapping[str, str]
) -> dict[str, float | None]:
    """Measures a ranking of turns by sessions: turns are taken until k sessions are among them.

    The official ids distinguish a session's flagged turns from its other turns, so that such a
    session counts as two; each flagged turn gains separately.
    """
    ranks, depths = _ranks_of(ranked, relevant), []
    seen: set[tuple[str, bool]] = set()
    for rank, turn in enumerate(ranked, start=1):
        document = session_of[turn], turn in relevant
        if document not in seen:
            seen.add(document)
            depths.append(rank)

    sought = {session_of[turn] for turn in relevant}
    # A ranking that holds every turn has no further session to offer.
    whole = len(set(ranked)) == len(session_of)
    metrics: dict[str, float | None] = {}

    for k in CUTOFFS:
        if k <= len(depths):
            depth = depths[k - 1]
        elif whole:
            depth = len(ranked)
        else:
            metrics |= _by_metric("session", k)
            continue

        sessions = {session_of[ranked[rank - 1]] for rank in ranks if rank <= depth}
        ndcg = official_ndcg(ranks, len(relevant), depth)
        values = (float(bool(sessions)), float(sessions == sought), ndcg)
        metrics |= _by_metric("session", k, values)

    return metrics


def _ranks_of(ranked: Sequence[str], relevant: set[str]) -> list[int]:
    """1-based ranks of the relevant documents. One that a memory returns again gains only once."""
    first: dict[str, int] = {}
    for rank, document in enumerate(ranked, start=1):
        if document in relevant:
            first.setdefault(document, rank)

    return list(first.values())


def _by_metric(
    name: str, k: int, values: Sequence[float | None] = (None, None, None)
) -> dict[str, float | None]:
    path = f"{PREFIX}{name}/"
    names = (f"{path}recall_any_at_{k}", f"{path}recall_all_at_{k}", f"{path}ndcg_any_at_{k}")
    return dict(zip(names, values, strict=True))


def official_means(records: Sequence[Record]) -> dict[str, float | None]:
    """Means over the records that have official metrics; empty if none has."""
    columns: dict[str, list[float | None]] = {}
    for record in records:
        for name, value in record.metrics.items():
            if name.startswith(PREFIX):
                columns.setdefault(name, []).append(value)

    return {name: mean(column) for name, column in columns.items()}
