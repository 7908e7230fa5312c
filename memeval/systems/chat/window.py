"""The agent's window: all chunks, until a compression cuts it to the retained ones."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.records import MemoryChunk


def leaving(
    window: Sequence[MemoryChunk], retained: Sequence[MemoryChunk]
) -> Sequence[MemoryChunk]:
    """The chunks that leave a window, if a compression retains its newest ones."""
    return window[: max(0, len(window) - len(retained))]
