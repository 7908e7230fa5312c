"""Judges an answer by the values that it contains, in code: see `memeval.metrics.lifecycle`."""

from memeval.judges.contract import Judge, Metrics
from memeval.metrics.lifecycle import AnswerOutcome, outcome
from memeval.records import EvalQuestion, Label, Verdict

LABELS = {AnswerOutcome.RIGHT: Label.CORRECT, AnswerOutcome.REFUSED: Label.ABSTAINED}
"""Labels of outcomes; all other outcomes are wrong."""


class LifecycleJudge(Judge):
    """Right if the answer contains the right value, and none that was replaced, forgotten, planted
    or another user's. The reason names the outcome.
    """

    name = "lifecycle"
    benchmark = "lifecycle"
    judges_refusals = True
    judges_blanks = True

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        if question.traces is None:
            return self.unscored("the question has no values to judge by")

        result = outcome(answer, question.traces)
        label = LABELS.get(result, Label.WRONG)
        score = float(result is AnswerOutcome.RIGHT)
        return Verdict(judge=self.name, label=label, score=score, reason=result.value)
