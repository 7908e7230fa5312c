"""The agent's window, and how much of it a reader is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memeval.errors import UserError
from memeval.llm.tokens import count_tokens
from memeval.records import MemoryChunk


class Window:
    """The agent's window: all chunks, until a compression cuts it to the retained ones.

    Later chunks join them.
    """

    def __init__(self, chunks: Sequence[MemoryChunk] = ()) -> None:
        self.chunks = list(chunks)

    def add(self, chunk: MemoryChunk) -> None:
        """Adds the newest chunk."""
        self.chunks.append(chunk)

    def cut(self, retained: Sequence[MemoryChunk]) -> list[MemoryChunk]:
        """Keeps the retained chunks, which are the newest ones, and returns those that leave."""
        dropped = self.chunks[: max(0, len(self.chunks) - len(retained))]
        self.chunks = list(retained)
        return dropped


def newest(
    chunks: Sequence[MemoryChunk], tokens: int
) -> tuple[Sequence[MemoryChunk], dict[str, Any]]:
    """The newest chunks that fit into `tokens`, in order of time.

    The second value is the answer's note on the older ones that were cut.
    """
    sizes = [count_tokens(chunk.text) for chunk in chunks]
    first, room = len(chunks), tokens
    while first and sizes[first - 1] <= room:
        first -= 1
        room -= sizes[first]

    note = {"cut_chunks": first, "cut_tokens": sum(sizes[:first])} if first else {}
    return chunks[first:], note


def check_positive(**settings: int) -> None:
    """Raises `UserError` for a setting that is not above 0."""
    for name, value in settings.items():
        if value <= 0:
            raise UserError(f"system.{name} must be positive, but is {value}")
