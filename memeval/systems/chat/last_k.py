"""Chat memory: the last chunks, for every question."""

from dataclasses import dataclass, field

from memeval.systems.base import ANSWER, POSITIVE, SystemSettings
from memeval.systems.chat.chat_memory import ChatMemory


@dataclass(frozen=True)
class LastKSettings(SystemSettings):
    # As in Mastra's configuration of this kind, like the defaults of the other chat memories.
    last_messages: int = field(default=50, metadata=ANSWER | POSITIVE)
    """Newest chunks of all sessions that are shown; top_k does not limit them."""


class LastK(ChatMemory):
    """Shows the last chunks. It searches nothing, so it reports no retrieval."""

    settings_type = LastKSettings
