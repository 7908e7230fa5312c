"""MemoryAgentBench's judge: the metric of each sub-data set."""

from __future__ import annotations

import re
from typing import ClassVar

from memeval.errors import UserError
from memeval.judges.contract import Metrics
from memeval.judges.longmemeval import ABSTENTION, KIND_OF, KINDS, LongMemEvalJudge
from memeval.judges.model import ModelJudge
from memeval.llm.contract import JudgePrompt
from memeval.metrics.memae import CHAT, RULES, SUMMARY, metric_of
from memeval.prompts import Wording, joined, sections_from_file, shipped
from memeval.records import EvalQuestion, Label, Role, Verdict

PASS_MARK = 0.5
"""Score from which on a summary counts as right."""
TYPE_FACET = "question_type"
_NUMBER = r'"{name}"\s*:\s*"?(\d+)'


class MemaeJudge(ModelJudge):
    """Right by the sub-data set's metric; its value is the score. A model is asked for summaries and for questions about chats alone.

    Substring and exact match are right at 1; of recommendations all wanted titles must be among the first five, and recall is the score.
    Questions about chats are judged by LongMemEval's rules. A summary's score is 0 where it is not fluent, else the F1 of the key points
    that it conveys and of its sentences that the reference bears out; it is right from `PASS_MARK` on. Source: Hu et al., 2025.
    """

    name = "memae"
    needs_model: ClassVar[bool] = False
    judges_refusals = True

    @classmethod
    def wording(cls, prompt_file: str | None) -> Wording:
        """A wording of parts: LongMemEval's, and one for summaries. A file of one's own has a section for each."""
        if prompt_file:
            return sections_from_file(prompt_file, (*KINDS, SUMMARY), ("question", "gold", "answer"))
        parts = {kind: shipped(f"judge_longmemeval_{kind}") for kind in KINDS}
        return joined("judge_memae", {**parts, SUMMARY: shipped("judge_memae_summary")})

    async def judge(self, question: EvalQuestion, answer: str, metrics: Metrics) -> Verdict:
        metric = metric_of(str(question.category))
        if metric in RULES:
            score = RULES[metric](answer, question.gold)
            return self.verdict(answer, right=score == 1.0, score=score, reason=metric)
        if metric not in (CHAT, SUMMARY):
            raise UserError(f"judge=memae knows no metric for the sub-data set '{question.category}'")
        return await (self._summary(question, answer) if metric == SUMMARY else self._chat(question, answer))

    async def _ask(self, kind: str, question: EvalQuestion, answer: str, tokens: int | None) -> str:
        words = self._wording.parts[kind]
        prompt = JudgePrompt(question.text, question.gold, answer, words.system, words.user, tokens)
        return (await self._model.complete(prompt, role=Role.JUDGE, seed=self._seed)).text

    async def _chat(self, question: EvalQuestion, answer: str) -> Verdict:
        kind = KIND_OF.get(question.facets.get(TYPE_FACET, ""), "fact") if question.answerable else ABSTENTION
        reply = await self._ask(kind, question, answer, LongMemEvalJudge.reply_tokens)
        if not reply.strip():
            return Verdict(self.name, Label.UNSCORED, None, "the judge's reply is empty")
        right = "yes" in reply.lower()
        if question.answerable:
            return self.verdict(answer, right=right, score=float(right))
        return Verdict(self.name, Label.CORRECT if right else Label.WRONG, float(right))

    async def _summary(self, question: EvalQuestion, answer: str) -> Verdict:
        reply = await self._ask(SUMMARY, question, answer, None)
        counts = read_counts(reply)
        if counts is None:
            return Verdict(self.name, Label.UNSCORED, None, f"no counts in the judge's reply: {reply[:200]}")
        score = summary_score(*counts)
        return self.verdict(answer, right=score >= PASS_MARK, score=score, reason=" ".join(map(str, counts)))


def read_counts(reply: str) -> tuple[int, int, int, int, int] | None:
    """`fluent`, `conveyed` of `points`, `supported` of `sentences`, the last of each in a reply; None if one is missing or impossible."""
    names = ("fluent", "conveyed", "points", "supported", "sentences")
    found = [re.findall(_NUMBER.format(name=name), reply) for name in names]
    if not all(found):
        return None
    fluent, conveyed, points, supported, sentences = (int(numbers[-1]) for numbers in found)
    possible = fluent in (0, 1) and conveyed <= points and supported <= sentences and points > 0
    return (fluent, conveyed, points, supported, sentences) if possible else None


def summary_score(fluent: int, conveyed: int, points: int, supported: int, sentences: int) -> float:
    """F1 of conveyed points (recall) and supported sentences (precision), in [0, 1]; 0.0 where the summary is not fluent."""
    if not fluent or not conveyed or not supported:
        return 0.0
    recall, precision = conveyed / points, supported / sentences
    return 2 * recall * precision / (recall + precision)
