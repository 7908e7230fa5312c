"""The agent without a memory: chunks that a compression drops from its window are lost."""

from collections.abc import Sequence

from memeval.records import MemoryChunk
from memeval.systems.chunk_file import split_window
from memeval.systems.controls.long_context import LongContext


class Native(LongContext):
    """Shows its window: all chunks, or those that the last compression retained and later ones."""

    def compress(self, retained: Sequence[MemoryChunk]) -> None:
        # Chunks that leave the window are dropped on purpose: this agent has no memory.
        self.replace_chunks(split_window(self._chunks, retained)[1])
