"""The reply of a reranker."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memeval.llm.reply.body import UnsoundReplyError, batch_tokens, in_order

MOST_SCORE = 1e300
"""Scores of at least this size do not count as finite numbers."""


class RankingReply(Struct, frozen=True):
    """The sound part of a reranker's reply."""

    scores: tuple[float, ...]
    """A score for each document, in the order sent."""
    tokens: int | None
    notes: tuple[str, ...] = ()


def read_ranking(reply: Mapping[str, Any], documents: int) -> RankingReply:
    """Each document's score, in the order sent. Raises `UnsoundReplyError` if one is missing."""
    rows = in_order(reply.get("results"), documents, "score", "document")
    if any("index" not in row for row in rows):
        raise UnsoundReplyError("a score of the reply has no valid index")

    scores = []
    for row in rows:
        score: Any = row.get("relevance_score")
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        # No comparison with NaN is true.
        if not (is_number and abs(score) < MOST_SCORE):
            raise UnsoundReplyError("a score of the reply is not a finite number")

        scores.append(float(score))

    tokens, notes = batch_tokens(reply.get("usage"), "total_tokens", "prompt_tokens")
    return RankingReply(tuple(scores), tokens, notes)
