"""The reply of a reranker."""

from __future__ import annotations

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
        if not _is_score(score):
            raise UnsoundReplyError("a score of the reply is not a finite number")

        scores.append(float(score))

    tokens, notes = batch_tokens(reply.get("usage"), "total_tokens", "prompt_tokens")
    return RankingReply(tuple(scores), tokens, notes)


def _is_score(value: object) -> bool:
    """Whether a reranker's score is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False

    return abs(value) < MOST_SCORE  # False for NaN and infinity
