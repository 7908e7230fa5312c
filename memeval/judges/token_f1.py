"""Token F1 as a judge."""

from __future__ import annotations

from memeval.judges.contract import Judge, JudgeContext, Metrics
from memeval.records import AnswerKind, EvalQuestion, Verdict

THRESHOLD = 0.5
"""Least F1 that counts as right if `judge.threshold` is not set."""


class TokenF1Judge(Judge):
    """Right from a threshold of the data set's official F1 on; the score is the F1 itself."""

    name = "token_f1"
    usual_for = frozenset({AnswerKind.PASSAGES})

    def __init__(self, threshold: float = THRESHOLD) -> None:
        self.threshold = threshold

    @classmethod
    def build(cls, context: JudgeContext) -> TokenF1Judge:
        return cls(THRESHOLD if context.threshold is None else context.threshold)

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        score = metrics["token_f1"]
        if score is None:
            reason = (
                "token_f1 is not defined for this answer: judge=contains or a model can judge it"
            )
            return self.unscored(reason)

        return self.verdict(answer, right=score >= self.threshold, score=score)
