"""LongMemEval's judge: a prompt for each kind of question, and a reply of one word."""

from abc import abstractmethod
from typing import ClassVar

from memeval.errors import UserError
from memeval.judges.contract import Metrics
from memeval.judges.model import CUT, ModelJudge
from memeval.judges.reading import YES_NO, read_yes, words_for
from memeval.llm.contract import Completion
from memeval.records import EvalQuestion, Verdict

ABSTENTION = "abstention"
KIND_OF = {
    "single-session-user": "fact",
    "single-session-assistant": "fact",
    "multi-session": "fact",
    "temporal-reasoning": "temporal",
    "knowledge-update": "update",
    "single-session-preference": "preference",
}
"""Kind of prompt template by question type. `abstention` judges the unanswerable questions of all
types.
"""
KINDS = (*dict.fromkeys(KIND_OF.values()), ABSTENTION)
REPLY_TOKENS = 10
"""Maximum number of tokens of a reply in the protocol."""


class YesNoJudge(ModelJudge):
    """Asks a model for yes or no. Reads the first word, or with `judge.reading=official` a "yes"
    anywhere in the reply.
    """

    says_yes_or_no: ClassVar[bool] = True

    @staticmethod
    @abstractmethod
    def kind_of(question: EvalQuestion) -> str:
        """The kind of prompt template that judges a question."""

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        # The published rule reads only yes and no, and a user's template can't ask for other words.
        official, is_custom = self._settings.reading == "official", self._template.is_custom
        words = YES_NO if official or is_custom else words_for(answer)
        template = self._template.parts[self.kind_of(question)]
        prompt = self._prompt(question, answer, template, max_tokens=REPLY_TOKENS, words=words)

        def read(reply: Completion) -> Verdict | None:
            right = read_yes(
                reply.text if official else reply.whole,
                reading=self._settings.reading,
                cut=reply.finish_reason == CUT,
                answer=answer,
                quotable=prompt.quotable,
                words=prompt.words,
                bare=is_custom,
            )
            if right is None:
                return None

            abstains = question.answerable
            return self.verdict(answer, right=right, score=float(right), abstains=abstains)

        return await self._take_votes(prompt, read, tried)


class LongMemEvalJudge(YesNoJudge):
    """Right if and only if the model says yes, under the prompt for the question's type. Source: Wu
    et al., ICLR 2025.

    The protocol's judge is gpt-4o-2024-08-06 at temperature 0, with 10 tokens for its reply.
    """

    name = "longmemeval"
    benchmark = "longmemeval"
    judges_refusals = True
    kinds = KINDS
    prompts = "memeval.datasets.longmemeval"

    @staticmethod
    def kind_of(question: EvalQuestion) -> str:
        """The kind of prompt template that judges a question.

        Raises `UserError` for a question type that the protocol does not have.
        """
        # By the id's `_abs`, as published, before the type: such questions have a type as well.
        if not question.answerable:
            return ABSTENTION

        if question.category not in KIND_OF:
            raise UserError(
                f"judge=longmemeval has no prompt for question type '{question.category}', only "
                f"for {', '.join(KIND_OF)}"
            )

        return KIND_OF[str(question.category)]
