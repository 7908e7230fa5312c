"""The reply of a reranker."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from memeval.llm.reply.body import IndexedRow, batch_tokens, in_order, read

MAX_SCORE = 1e300
"""Scores of at least this size do not count as finite numbers."""
Score = Annotated[float, Meta(gt=-MAX_SCORE, lt=MAX_SCORE)]


class _Row(IndexedRow, kw_only=True):
    index: int
    relevance_score: Score


class _Ranking(Struct):
    results: list[_Row]
    usage: Any = None


class RankingReply(Struct, frozen=True):
    """The sound part of a reranker's reply."""

    scores: tuple[float, ...]
    """A score for each document, in the order sent."""
    tokens: int | None
    notes: tuple[str, ...] = ()


def read_ranking(reply: Mapping[str, Any], documents: int) -> RankingReply:
    """Each document's score, in the order sent. Raises `UnsoundReplyError` if one is missing."""
    ranking = read(reply, _Ranking)
    rows = in_order(ranking.results, documents, "score", "document")
    scores = tuple(row.relevance_score for row in rows)
    tokens, notes = batch_tokens(ranking.usage, "total_tokens", "prompt_tokens")
    return RankingReply(scores, tokens, notes)
