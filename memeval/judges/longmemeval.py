"""LongMemEval's judge: a prompt for each kind of question, a reply of one word."""

from __future__ import annotations

from typing import ClassVar

from memeval.errors import UserError
from memeval.judges.contract import Metrics
from memeval.judges.model import ModelJudge
from memeval.llm.contract import JudgePrompt
from memeval.prompts import Wording, joined, sections_from_file, shipped
from memeval.records import EvalQuestion, Label, Role, Verdict

ABSTENTION = "abstention"
KIND_OF = {
    "single-session-user": "fact",
    "single-session-assistant": "fact",
    "multi-session": "fact",
    "temporal-reasoning": "temporal",
    "knowledge-update": "update",
    "single-session-preference": "preference",
}
"""Which prompt judges a question type; `abstention` judges the questions that have no answer, whatever their type."""
KINDS = (*dict.fromkeys(KIND_OF.values()), ABSTENTION)


class LongMemEvalJudge(ModelJudge):
    """Right iff the reply holds "yes", in whatever case; an empty reply leaves the answer unscored. Source: Wu et al., ICLR 2025.

    The protocol's judge is gpt-4o-2024-08-06 at temperature 0, with 10 tokens for its reply.
    """

    name = "longmemeval"
    judges_refusals = True
    reply_tokens: ClassVar[int] = 10

    @classmethod
    def wording(cls, prompt_file: str | None) -> Wording:
        """A wording of parts, one a kind of question. A file of one's own has a section for each: see `sections_from_file`."""
        if prompt_file:
            return sections_from_file(prompt_file, KINDS, ("question", "gold", "answer"))
        return joined("judge_longmemeval", {kind: shipped(f"judge_longmemeval_{kind}") for kind in KINDS})

    async def judge(self, question: EvalQuestion, answer: str, metrics: Metrics) -> Verdict:
        words = self._wording.parts[kind_of(question)]
        prompt = JudgePrompt(question.text, question.gold, answer, words.system, words.user, self.reply_tokens)
        reply = (await self._model.complete(prompt, role=Role.JUDGE, seed=self._seed)).text
        if not reply.strip():
            return Verdict(self.name, Label.UNSCORED, None, "the judge's reply is empty")
        right = "yes" in reply.lower()
        if question.answerable:
            return self.verdict(answer, right=right, score=float(right))
        return Verdict(self.name, Label.CORRECT if right else Label.WRONG, float(right))


def kind_of(question: EvalQuestion) -> str:
    """The prompt that judges a question. Raises `UserError` for a question type that the protocol does not have."""
    if not question.answerable:
        return ABSTENTION
    if question.category not in KIND_OF:
        raise UserError(f"judge=longmemeval knows no question type '{question.category}'; it has {', '.join(KIND_OF)}")
    return KIND_OF[str(question.category)]
