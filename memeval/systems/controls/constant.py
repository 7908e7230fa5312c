"""The control that always gives the same answer: a judge's score for nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.errors import UserError
from memeval.records import Answer, MemoryChunk, Query
from memeval.systems.base import ANSWER, MemorySystem, SystemSettings


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `constant`."""

    text: str = field(default="No information available", metadata=ANSWER)
    """The answer to every question in words. Of choices, it takes the first."""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise UserError("system.text is empty, but it is the answer to every question")


class Constant(MemorySystem):
    """Answers every question by the same words, and asks no model."""

    settings_type = Settings
    in_thread = False
    settings: Settings

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        pass

    def ingest(self, chunk: MemoryChunk) -> None:
        pass

    def answer(self, query: Query) -> Answer:
        text = query.choice_labels.label(0) if query.choices else self.settings.text
        return Answer(text=text, context_tokens=0)

    def save(self, folder: Path) -> None:
        pass

    def load(self, folder: Path) -> None:
        pass
