"""Token F1 as a judge."""

from __future__ import annotations

from memeval.judges.contract import Judge, Metrics
from memeval.records import EvalQuestion, Verdict


class TokenF1Judge(Judge):
    """Right from a threshold of the data set's official F1 on; the score is the F1 itself."""

    name = "token_f1"

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        score = metrics["token_f1"] or 0.0
        return self.verdict(answer, right=score >= self.threshold, score=score)
