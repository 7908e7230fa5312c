"""Chat memory: a form that the model keeps up to date, and the last chunks."""

from dataclasses import dataclass, field

from memeval.systems.base import ANSWER, INGEST, POSITIVE, SystemSettings
from memeval.systems.chat.chat_memory import ChatMemory
from memeval.systems.chat.working_form import WorkingMemorySettings


@dataclass(frozen=True)
class WorkingMemorySystemSettings(SystemSettings):
    working_memory: WorkingMemorySettings = field(default=WorkingMemorySettings(), metadata=INGEST)
    """The form."""
    last_messages: int = field(default=10, metadata=ANSWER | POSITIVE)
    """Newest chunks of all sessions that are shown; top_k does not limit them."""


class WorkingMemory(ChatMemory):
    """Shows the form and the last chunks; a form names no turns, so there is no retrieval."""

    settings_type = WorkingMemorySystemSettings
