"""The judge contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from memeval.config.schema import JudgeConfig
from memeval.llm.model import LanguageModel
from memeval.llm.prompts import PromptTemplate
from memeval.records import IN_WORDS, AnswerKind, EvalQuestion, Label, Verdict

Metrics = Mapping[str, float | None]
"""The free metrics of an answer, by name: see `memeval.metrics.answer`."""


def is_fenced(settings: JudgeConfig, template: PromptTemplate) -> bool:
    """Whether question, reference and answer are sent between marks if this template is used."""
    # Built-in templates mention the marks.
    if settings.fence is None:
        return not template.is_custom

    return settings.fence


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """Parts that a judge is built from."""

    model: Callable[[], LanguageModel]
    """Creates the judge's model. Only judges that use a model call it: it may need a key."""
    template: PromptTemplate | None = None
    """Template that `Judge.template` returned."""
    threshold: float | None = None
    """`judge.threshold`."""
    settings: JudgeConfig = field(default_factory=JudgeConfig)
    """How a model is prompted, and how its replies are read."""
    seed: int = 0
    """Seed of the repeat."""


class Judge(ABC):
    """Judges one answer at a time, against gold."""

    name: ClassVar[str]
    needs_model: ClassVar[bool] = False
    """True for judges that are models themselves."""
    answers: ClassVar[frozenset[AnswerKind]] = IN_WORDS
    """The kinds of answer that it judges."""
    usual_for: ClassVar[frozenset[AnswerKind]] = frozenset()
    """The kinds for which `judge=auto` selects it, unless the benchmark has an official judge."""
    benchmark: ClassVar[str | None] = None
    """The benchmark of an official judge: it judges no other, and `judge=auto` selects it."""
    judges_refusals: ClassVar[bool] = False
    """True for judges that also judge questions without an answer. Otherwise a rule judges them."""
    judges_blanks: ClassVar[bool] = False
    """True if the verdict on an answer without words counts; otherwise such an answer is wrong."""

    @classmethod
    def applies_to(cls, kind: AnswerKind, benchmark: str | None) -> bool:
        """Whether it judges this kind of answer to questions of this benchmark."""
        return kind in cls.answers and cls.benchmark in (None, benchmark)

    @classmethod
    def template(cls, prompt_file: str | None) -> PromptTemplate | None:
        """Prompt template of a judge with a model: its own or `prompt_file`'s; None for the others.

        Its text is part of the key of the verdicts.
        """
        return None

    @classmethod
    def build(cls, context: JudgeContext) -> Judge:
        """Builds the judge. The default calls the class without arguments."""
        return cls()

    @abstractmethod
    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        """The verdict on an answer; `unscored` if the judge's own reply can't be read.

        `tried` is the number of replies that earlier passes could not read: these come from the
        cache, and further ones are requested. Questions without an answer are only passed to judges
        with `judges_refusals`. Raises `ModelError` if the judge's call failed.
        """

    def unscored(self, reason: str, *, tries: int = 0, votes: tuple[Label, ...] = ()) -> Verdict:
        """The verdict on an answer that could not be scored."""
        return Verdict(
            judge=self.name,
            label=Label.UNSCORED,
            score=None,
            reason=reason,
            votes=votes,
            tries=tries,
        )

    def verdict(
        self, answer: str, *, right: bool, score: float, reason: str = "", abstains: bool = True
    ) -> Verdict:
        """A verdict of this judge; a wrong answer that refuses counts as abstained, unless
        `abstains` is false.
        """
        # Imported late: its patterns take long to compile, and a finished run judges nothing.
        from memeval.metrics.refusal import is_refusal

        if right:
            label = Label.CORRECT
        elif abstains and is_refusal(answer):
            label = Label.ABSTAINED
        else:
            label = Label.WRONG

        return Verdict(judge=self.name, label=label, score=score, reason=reason)


def refusal_verdict(answer: str, metrics: Metrics) -> Verdict:
    """The verdict on a question without an answer: right iff the reply refuses.

    LoCoMo's official rule decides if it gave a score, otherwise memeval's longer list of refusals.
    """
    from memeval.metrics.refusal import is_refusal

    # Without a gold there is no F1, except for LoCoMo, whose scorer has a rule for these questions.
    official = metrics["token_f1"]
    if official is None:
        name, right = "refusal", is_refusal(answer)
    else:
        name, right = "official_refusal", official == 1.0

    return Verdict(judge=name, label=Label.CORRECT if right else Label.WRONG, score=float(right))
