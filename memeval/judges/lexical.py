"""Judges that decide by one metric of the answer's words."""

from typing import ClassVar, Self

from memeval.judges.contract import Judge, JudgeContext, Metrics
from memeval.records import AnswerKind, EvalQuestion, Verdict

THRESHOLD = 0.5
"""Minimum F1 that counts as right if `judge.threshold` is not set."""


class LexicalJudge(Judge):
    """Right if a metric is 1; the score is 1 or 0."""

    metric: ClassVar[str]

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        score = metrics[self.metric]
        if score is None:
            return self.unscored("the question has no gold")

        return self.verdict(answer, right=score == 1.0, score=score)


class ContainsJudge(LexicalJudge):
    """Right if a normalised gold occurs in the normalised answer, as whole words."""

    name = metric = "contains"


class ExactMatchJudge(LexicalJudge):
    """Right if the normalised answer equals a normalised gold."""

    name = metric = "exact_match"
    usual_for = frozenset({AnswerKind.VALUES})


class KeywordJudge(LexicalJudge):
    """Right if the gold occurs in the answer, or at least 0.6 of its keywords do.

    Source: arXiv 2601.00821, evaluation code.
    """

    name = "keyword"
    metric = "keyword_pass"
    usual_for = frozenset({AnswerKind.WORDS, AnswerKind.SENTENCES})


class TokenF1Judge(Judge):
    """Right if the data set's official F1 reaches a threshold; the score is the F1 itself."""

    name = "token_f1"
    usual_for = frozenset({AnswerKind.PASSAGES})

    def __init__(self, threshold: float = THRESHOLD) -> None:
        self.threshold = threshold

    @classmethod
    def build(cls, context: JudgeContext) -> Self:
        threshold = context.threshold
        # Not a subclass's own default: the run's identity names this one.
        if threshold is None:
            threshold = THRESHOLD

        return cls(threshold)

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        score = metrics["token_f1"]
        if score is None:
            return self.unscored(
                "token_f1 is not defined for this answer; judge=contains or a model can judge it"
            )

        return self.verdict(answer, right=score >= self.threshold, score=score)
