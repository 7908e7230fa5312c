"""The chunks of a conversation, in batches that one call reads."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.llm.tokens import count_tokens
from memeval.records import MemoryChunk

Batch = Sequence[tuple[int, MemoryChunk]]
"""Chunks with their positions in the conversation."""


def batches(chunks: Sequence[MemoryChunk], most_chunks: int, most_tokens: int) -> list[Batch]:
    """The chunks in order, in batches of at most `most_chunks` and `most_tokens`.

    A longer chunk is a batch of its own.
    """
    cut: list[list[tuple[int, MemoryChunk]]] = []
    room = 0
    for number, chunk in enumerate(chunks):
        tokens = count_tokens(chunk.text)
        if not cut or len(cut[-1]) >= most_chunks or tokens > room:
            cut.append([])
            room = most_tokens

        cut[-1].append((number, chunk))
        room -= tokens

    return list(cut)
