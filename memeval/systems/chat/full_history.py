"""Chat memory limited only by the context: all chunks of the case, in order."""

from memeval.systems.controls.long_context import LongContext


class FullHistory(LongContext):
    """`long_context` under the name that chat-memory frameworks use."""
