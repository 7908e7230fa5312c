"""The gold inside the answer, as a judge."""

from __future__ import annotations

from memeval.judges.contract import Judge, Metrics
from memeval.records import EvalQuestion, Verdict


class ContainsJudge(Judge):
    """Right if a normalised gold occurs in the normalised answer, as whole words."""

    name = "contains"

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        is_contained = metrics["contains"] == 1.0
        return self.verdict(answer, right=is_contained, score=float(is_contained))
