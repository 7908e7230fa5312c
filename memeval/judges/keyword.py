"""CogCanvas' keyword score as a judge."""

from __future__ import annotations

from memeval.judges.contract import Judge, Metrics
from memeval.records import AnswerKind, EvalQuestion, Verdict


class KeywordJudge(Judge):
    """Right if the gold occurs in the answer, or at least 0.6 of its keywords do.

    Source: arXiv 2601.00821, evaluation code.
    """

    name = "keyword"
    usual_for = frozenset({AnswerKind.WORDS, AnswerKind.SENTENCES})

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        passed = metrics["keyword_pass"] == 1.0
        return self.verdict(answer, right=passed, score=float(passed))
