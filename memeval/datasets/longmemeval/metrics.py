"""LongMemEval's own figures: retrieval metrics as its code computes them, which differ from the
textbook's.

Source: Wu et al., ICLR 2025, src/retrieval/eval_utils.py. Documents are user turns, or sessions as
their user turns; those with a flagged turn are relevant. Questions that are unanswerable, or flag
no user turn, are left out of the means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log2

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
    return sum(1.0 if rank == 1 else 1 / log2(rank) for rank in ranks)


def official_ndcg(ranks: Iterable[int], relevant: int, k: int) -> float:
    """Gain of the relevant documents within k, divided by that of `relevant` documents at the first
    ranks; 0.0 if nothing is relevant.
    """
    ideal = official_dcg(range(1, min(relevant, k) + 1))
    return official_dcg(rank for rank in ranks if rank <= k) / ideal if ideal else 0.0


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

    sessions: dict[str, list[str]] = {}
    for turn, session in session_of.items():
        sessions.setdefault(session, []).append(turn)

    if all(len(turn_ids) == 1 for turn_ids in ranking):
        turns = [turn_ids[0] for turn_ids in ranking]
        relevant = set(evidence)
        by_turn = _documents(name="turn", ranked=turns, relevant=relevant, corpus=len(session_of))
        return by_turn | sessions_of_turns(turns, relevant, session_of)

    ranked = [session_of[turn_ids[0]] if turn_ids else "" for turn_ids in ranking]
    for turn_ids, session in zip(ranking, ranked, strict=True):
        if sorted(turn_ids) != sorted(sessions.get(session, ())):
            return {}

    relevant = {session_of[turn] for turn in evidence}
    return _documents(name="session", ranked=ranked, relevant=relevant, corpus=len(sessions))


def _documents(
    name: str, ranked: Sequence[str], relevant: set[str], corpus: int
) -> dict[str, float | None]:
    """recall_any, recall_all and ndcg_any at every cutoff; None if the ranking ends before it."""
    ranks = [rank for rank, document in enumerate(ranked, start=1) if document in relevant]
    metrics: dict[str, float | None] = {}
    for k in CUTOFFS:
        within = sum(rank <= k for rank in ranks)
        values = (
            float(within > 0),
            float(within == len(relevant)),
            official_ndcg(ranks, len(relevant), k),
        )
        metrics |= _by_metric(name, k, values if len(ranked) >= min(k, corpus) else None)

    return metrics


def sessions_of_turns(
    ranked: Sequence[str], relevant: set[str], session_of: Mapping[str, str]
) -> dict[str, float | None]:
    """Measures a ranking of turns by sessions: turns are taken until k sessions are among them.

    The official ids distinguish a session's flagged turns from its other turns, so that such a
    session counts as two; each flagged turn gains separately.
    """
    ranks = [rank for rank, turn in enumerate(ranked, start=1) if turn in relevant]
    depths = list(_new_at([(session_of[turn], turn in relevant) for turn in ranked]))
    sought = {session_of[turn] for turn in relevant}
    # A ranking that holds every turn has no further session to offer.
    whole = len(ranked) == len(session_of)
    metrics: dict[str, float | None] = {}

    for k in CUTOFFS:
        if k <= len(depths):
            depth = depths[k - 1]
        elif whole:
            depth = len(ranked)
        else:
            metrics |= _by_metric("session", k, None)
            continue

        sessions = {session_of[ranked[rank - 1]] for rank in ranks if rank <= depth}
        ndcg = official_ndcg(ranks, len(relevant), depth)
        values = (float(bool(sessions)), float(sessions == sought), ndcg)
        metrics |= _by_metric("session", k, values)

    return metrics


def _new_at(groups: Sequence[tuple[str, bool]]) -> Iterable[int]:
    """The 1-based positions at which a group appears for the first time."""
    seen: set[tuple[str, bool]] = set()
    for position, group in enumerate(groups, start=1):
        if group not in seen:
            seen.add(group)
            yield position


def _by_metric(
    name: str, k: int, values: tuple[float, float, float] | None
) -> dict[str, float | None]:
    metrics = ("recall_any", "recall_all", "ndcg_any")
    return {
        f"{PREFIX}{name}/{metric}_at_{k}": value
        for metric, value in zip(metrics, values or (None, None, None), strict=True)
    }


def official_means(records: Sequence[Record]) -> dict[str, float | None]:
    """Means over the records that have official metrics; empty if none has."""
    rows = [record.metrics for record in records]
    names = dict.fromkeys(name for row in rows for name in row if name.startswith(PREFIX))
    return {name: mean(row[name] for row in rows if name in row) for name in names}
