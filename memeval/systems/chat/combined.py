"""Chat memory: working memory, semantic recall and the last chunks together."""

from dataclasses import dataclass, field

from memeval.systems.base import ANSWER, INGEST, POSITIVE, SystemSettings
from memeval.systems.chat.chat_memory import ChatMemory, RecallSettings
from memeval.systems.chat.working_form import WorkingMemorySettings


@dataclass(frozen=True)
class CombinedSettings(SystemSettings):
    last_messages: int = field(default=20, metadata=ANSWER | POSITIVE)
    """Newest chunks of all sessions that are shown; top_k does not limit them."""
    recall: RecallSettings = field(
        default=RecallSettings(top_k=5, message_range=1), metadata=ANSWER
    )
    """Settings of the recall."""
    working_memory: WorkingMemorySettings = field(default=WorkingMemorySettings(), metadata=INGEST)
    """The form."""


class Combined(ChatMemory):
    """Shows the form, the recalled chunks with neighbours and the last chunks; ranks only hits."""

    settings_type = CombinedSettings
