"""Equality as a judge."""

from __future__ import annotations

from memeval.judges.contract import Judge, Metrics
from memeval.records import AnswerKind, EvalQuestion, Verdict


class ExactMatchJudge(Judge):
    """Right if the normalised answer equals a normalised gold."""

    name = "exact_match"
    usual_for = frozenset({AnswerKind.VALUES})

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        equal = metrics["exact_match"] == 1.0
        return self.verdict(answer, right=equal, score=float(equal))
