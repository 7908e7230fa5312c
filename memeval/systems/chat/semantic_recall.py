"""Chat memory: the messages that are nearest to the question, each with its neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field

from memeval.systems.base import ANSWER, SystemContext, SystemSettings
from memeval.systems.chat.chat_memory import ChatMemory, RecallSettings


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `semantic_recall`."""

    recall: RecallSettings = field(default=RecallSettings(), metadata=ANSWER)
    """What is recalled."""


class SemanticRecall(ChatMemory):
    """Recalls chunks by the cosine of their embeddings.

    Its retrieval is the hits; neighbours are context.
    """

    settings_type = Settings

    def __init__(self, settings: Settings, parts: SystemContext) -> None:
        super().__init__(settings, parts, recall=settings.recall)
