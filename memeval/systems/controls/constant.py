"""The control that always gives the same answer: the score that a judge gives for nothing."""

from dataclasses import dataclass, field

from memeval.errors import UserError
from memeval.records import Answer, Query
from memeval.systems.base import ANSWER, SystemSettings
from memeval.systems.controls.no_memory import EmptySystem


@dataclass(frozen=True)
class ConstantSettings(SystemSettings):
    text: str = field(default="No information available", metadata=ANSWER)
    """The answer to every question in words. Questions with choices get the first choice."""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise UserError("system.text is empty, but it is the answer to every question")


class Constant(EmptySystem):
    """Answers every question with the same words, and calls no model."""

    settings_type = ConstantSettings
    settings: ConstantSettings

    def answer(self, query: Query) -> Answer:
        text = self.settings.text
        if query.choices:
            text = query.choice_labels.label(0)

        return Answer(text=text, context_tokens=0)
