"""Retrieval metrics from the ranks of the evidence.

All are in [0, 1], and None if a question names no evidence. `ranks` contains, for each evidence id,
the 1-based rank of the first ranked chunk that covers it, or None if no chunk does.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from math import inf, log2
from typing import TypeVar

from msgspec import Struct

from memeval.metrics.metric import (
    PAGE,
    PAPER,
    ROWS,
    SECTION,
    SECTION_BY_CATEGORY,
    SHOW,
    TABLE,
    TAGS,
    TILE,
    Metric,
)
from memeval.results.record import Record

Ranks = Sequence[int | None]

CUTOFFS = (1, 5, 10, 20)
RANKING = "ranking_"
"""Prefix of the metrics of the whole ranking, including chunks that the reader was not shown."""


TurnT = TypeVar("TurnT", bound=Hashable)
"""A turn: its id, or its position in the case."""
SessionOf = Callable[[TurnT], Hashable]
"""The session of a turn; raises `LookupError` for a turn that is not in the case."""


def evidence_ranks(
    ranking: Sequence[Sequence[TurnT]], evidence: Sequence[TurnT]
) -> list[int | None]:
    """For each turn of the evidence, the 1-based rank of the first chunk that covers it.

    `ranking` contains the turns of each chunk, best first.
    """
    first: dict[TurnT, int] = {}
    missing = set(evidence)
    for rank, turn_ids in enumerate(ranking, start=1):
        if not missing:
            break

        for turn_id in missing.intersection(turn_ids):
            first[turn_id] = rank
            missing.discard(turn_id)

    return list(map(first.get, evidence))


def session_ranking(
    ranking: Sequence[Sequence[TurnT]], session_of: SessionOf[TurnT]
) -> list[tuple[Hashable]]:
    """A ranking of turns as a ranking of sessions, in the order of their first turns."""
    sessions = map(session_of, chain.from_iterable(ranking))
    return [(session,) for session in dict.fromkeys(sessions)]


class EvidenceRanks(Struct, frozen=True):
    """Ranks of one question's evidence in a list of chunks."""

    turns: tuple[int | None, ...]
    sessions: tuple[int | None, ...]
    """Ranks of the distinct sessions that the evidence comes from."""


def ranks_of(
    ranking: Sequence[Sequence[TurnT]], evidence: Sequence[TurnT], session_of: SessionOf[TurnT]
) -> EvidenceRanks:
    """Ranks of the evidence turns, and of the sessions that they come from."""
    sessions = list(dict.fromkeys(map(session_of, evidence)))
    return EvidenceRanks(
        turns=tuple(evidence_ranks(ranking, evidence)),
        sessions=tuple(evidence_ranks(session_ranking(ranking, session_of), sessions)),
    )


def recall_at(ranks: Ranks, k: float) -> float | None:
    """Share of the evidence that is among the first k chunks: recall@k."""
    return _count_within(ranks, k) / len(ranks) if ranks else None


def hit_at(ranks: Ranks, k: int) -> float | None:
    """1.0 if at least one piece of evidence is among the first k chunks."""
    if not ranks:
        return None

    return float(_count_within(ranks, k) > 0)


def recall_all_at(ranks: Ranks, k: int) -> float | None:
    """1.0 if all the evidence is among the first k chunks: recall_all@k."""
    if not ranks:
        return None

    return float(_count_within(ranks, k) == len(ranks))


def reciprocal_rank(ranks: Ranks) -> float | None:
    """1 / rank of the first chunk that covers any evidence, 0.0 if none does.

    Its mean is MRR, without a cut-off.
    """
    if not ranks:
        return None

    return max((1 / rank for rank in ranks if rank is not None), default=0.0)


def ndcg_at(ranks: Ranks, k: int) -> float | None:
    """Normalised discounted cumulative gain with binary gains (Järvelin & Kekäläinen, 2002).

    Σ 1/log2(rank + 1) over the evidence within k, divided by the same sum for the ideal ranks 1 …
    min(n, k). Each piece of evidence has its own gain, even if several share one chunk. A chunk
    that covers two can thus beat the ideal, which has one per chunk, so the value is capped at 1.0.
    """
    if not ranks:
        return None

    # The textbook's discount. LongMemEval's own weighs ranks 1 and 2 the same, and has another
    # name.
    gain = sum(1 / log2(rank + 1) for rank in ranks if rank is not None and rank <= k)
    ideal = sum(1 / log2(rank + 1) for rank in range(1, min(len(ranks), k) + 1))
    return min(gain / ideal, 1.0)


def retrieval_metrics(
    shown: EvidenceRanks | None, ranking: EvidenceRanks | None, top_k: int | None
) -> dict[str, float | None]:
    """Every retrieval metric by name; the keys are always the same.

    Plain names are about the chunks that the reader was shown, at most `top_k`: metrics that need
    more, such as recall@10 of three chunks, are not measured. `recall_shown` and `mrr` use all of
    them. Names with `ranking_` are about the whole ranking, which is longer.
    """
    nothing = EvidenceRanks((), ())
    shown, ranking = shown or nothing, ranking or nothing
    metrics = {**_metrics_of(shown)}
    for k in CUTOFFS:
        if top_k is None or k > top_k:
            too_far = [name for name in metrics if name.endswith(f"_at_{k}")]
            metrics |= dict.fromkeys(too_far)

    metrics["recall_shown"] = recall_at(shown.turns, inf)
    return metrics | {f"{RANKING}{name}": value for name, value in _metrics_of(ranking).items()}


def retrieval_of(record: Record) -> dict[str, float | None]:
    """The retrieval metrics of one question."""
    shown = ranking = None
    if record.shown_evidence_ranks is not None:
        shown = EvidenceRanks(record.shown_evidence_ranks, record.shown_session_ranks or ())
    if record.evidence_ranks is not None:
        ranking = EvidenceRanks(record.evidence_ranks, record.session_evidence_ranks or ())

    return retrieval_metrics(shown, ranking, record.top_k)


@lru_cache(maxsize=1 << 14)
def _metrics_of(evidence: EvidenceRanks) -> Mapping[str, float | None]:
    """The metrics of one list of chunks, those of sessions with the prefix `session_`.

    Cached: most questions have one piece of evidence, so their ranks recur.
    """
    cut_metrics = {"recall": recall_at, "hit": hit_at, "recall_all": recall_all_at}
    metrics: dict[str, float | None] = {}
    for prefix, ranks in (("", evidence.turns), ("session_", evidence.sessions)):
        for name, metric in cut_metrics.items():
            metrics |= {f"{prefix}{name}_at_{k}": metric(ranks, k) for k in CUTOFFS}

        metrics[f"{prefix}mrr"] = reciprocal_rank(ranks)
        metrics[f"{prefix}ndcg_at_10"] = ndcg_at(ranks, 10)

    return metrics


def _count_within(ranks: Ranks, k: float) -> int:
    """Number of pieces of evidence among the first k chunks."""
    return sum(rank is not None and rank <= k for rank in ranks)


COLUMNS: dict[str, dict[str, str]] = {
    "recall_at_1": {SECTION_BY_CATEGORY: "turn R@1"},
    "recall_at_5": {TABLE: "turn R@5", SECTION_BY_CATEGORY: "turn R@5"},
    "recall_at_10": {
        TABLE: "turn R@10",
        PAGE: "turn R@10 %",
        ROWS: "recall_at_10",
        SECTION_BY_CATEGORY: "turn R@10",
    },
    "recall_all_at_10": {SECTION_BY_CATEGORY: "all@10"},
    "mrr": {SECTION_BY_CATEGORY: "MRR"},
    "ndcg_at_10": {SECTION_BY_CATEGORY: "nDCG@10"},
}
LINES: dict[str, dict[str, str]] = {
    "recall_at_5": {SHOW: "recall@5", TAGS: "recall_5"},
    "recall_at_10": {TILE: "Evidence in 10 chunks", TAGS: "recall_10"},
}


def _from_ranks(name: str, record: Record) -> float | None:
    """A metric, computed from the ranks of the evidence: records do not store it."""
    # Records of other programs may have the metric without the ranks.
    if not record.evidence_ranks:
        return record.metrics.get(name)

    return retrieval_of(record)[name]


def cutoff_of(name: str) -> int | None:
    """The k of `recall_at_<k>` and similar names; None for metrics of all chunks."""
    _, mark, depth = name.rpartition("_at_")
    return int(depth) if mark and depth.isdecimal() else None


def paper_title(name: str) -> str:
    """`turn recall@10`, `session recall@10`: the kind of evidence that it is a share of."""
    shown = name.removeprefix(RANKING)
    level = "session" if shown.startswith("session_") else "turn"
    title = shown.removeprefix("session_").replace("_at_", "@").replace("recall_all", "all-recall")
    title = title.replace("mrr", "MRR").replace("ndcg", "nDCG").replace("_", " ")
    if name.startswith(RANKING):
        title += ", whole ranking"

    return f"{level} {title}"


def _metric(name: str) -> Metric:
    lines = LINES.get(name, {})
    if not name.startswith((RANKING, "session_")):
        title = name.replace("_at_", "@").replace("mrr", "MRR").replace("ndcg", "nDCG")
        lines = {**lines, SECTION: title}

    return Metric(
        name,
        of_record=partial(_from_ranks, name),
        # All their means are computed together, see `pipeline.measure.figures`.
        averaged=False,
        all_categories=True,
        columns={PAPER: paper_title(name), **COLUMNS.get(name, {})},
        lines=lines,
        hint="share of the evidence within the first 10 chunks of the ranking",
        optional=(TILE,),
    )


METRICS = tuple(map(_metric, retrieval_metrics(None, None, None)))
