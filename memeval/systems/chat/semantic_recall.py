"""Chat memory: the chunks nearest to the question, with neighbours, and the last ones."""

from dataclasses import dataclass, field

from memeval.systems.base import ANSWER, NOT_NEGATIVE, SystemSettings
from memeval.systems.chat.chat_memory import ChatMemory, RecallSettings


@dataclass(frozen=True)
class SemanticRecallSettings(SystemSettings):
    recall: RecallSettings = field(default=RecallSettings(), metadata=ANSWER)
    """Settings of the recall."""
    last_messages: int = field(default=10, metadata=ANSWER | NOT_NEGATIVE)
    """Newest chunks of all sessions shown in addition; top_k does not limit them. 0 shows none. The
    default is that of Mastra's own run of LongMemEval.
    """


class SemanticRecall(ChatMemory):
    """Recalls chunks by cosine; neighbours and last chunks are context, not retrieval."""

    settings_type = SemanticRecallSettings
