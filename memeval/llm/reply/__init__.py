"""Content of an endpoint's reply, validated on entry: pure functions from JSON to sound values.

A reply without the requested content raises `UnsoundReplyError`; it may be requested again. Other
oddities (a usage that is not a number, thinking, control characters) are repaired by a fixed rule,
and named in `notes`.
"""

from __future__ import annotations

from memeval.llm.reply.body import (
    NOTES,
    ODD_USAGE,
    CutReplyError,
    FilteredReplyError,
    UnsoundReplyError,
    parse,
)
from memeval.llm.reply.chat import ChatReply, finish_reason, read_chat
from memeval.llm.reply.ranking import RankingReply, read_ranking
from memeval.llm.reply.stored import stored_chat, stored_ranking
from memeval.llm.reply.text import without_controls
from memeval.llm.reply.vectors import VectorsReply, read_vectors, sound_vector

__all__ = [
    "NOTES",
    "ODD_USAGE",
    "ChatReply",
    "CutReplyError",
    "FilteredReplyError",
    "RankingReply",
    "UnsoundReplyError",
    "VectorsReply",
    "finish_reason",
    "parse",
    "read_chat",
    "read_ranking",
    "read_vectors",
    "sound_vector",
    "stored_chat",
    "stored_ranking",
    "without_controls",
]
