"""OpsEval's judge of answers in words: fluency, accuracy and evidence."""

from collections.abc import Mapping
from dataclasses import replace

from memeval.datasets.opseval.metrics import CRITERIA
from memeval.judges.model import ModelJudge
from memeval.judges.reading import read_numbers
from memeval.llm.contract import Completion, JudgePrompt
from memeval.records import Verdict

MOST = 3
"""Maximum points of each criterion."""


class OpsEvalJudge(ModelJudge):
    """Right if the answer gets all points for accuracy; the share of points is the score.

    A model gives 0 to 3 points for each of the three criteria of OpsEval's FAE-Score (Liu et al.,
    2024): how fluent an answer is, how accurate against the reference, and how well it is
    substantiated. The paper's prompts are not public: this prompt and the scale are memeval's.
    """

    name = "opseval"
    benchmark = "opseval"
    prompts = "memeval.datasets.opseval"

    def _read(self, reply: Completion, prompt: JudgePrompt) -> Verdict | None:
        points = read_points(reply.text, prompt.answer)
        if points is None:
            return None

        parts, reasons = {}, []
        for name, given in points.items():
            parts[name] = (given / MOST,)
            reasons.append(f"{name} {given}")

        accuracy = points["accuracy"]
        verdict = self.verdict(
            prompt.answer,
            right=accuracy == MOST,
            score=accuracy / MOST,
            reason=", ".join(reasons),
        )
        return replace(verdict, parts=parts)


def read_points(reply: str, answer: str = "") -> Mapping[str, int] | None:
    """The points in the only JSON object of a reply; None if one is missing or out of range, or if
    the object is in the answer.
    """
    numbers = read_numbers(reply, CRITERIA, answer=answer)
    if numbers is None or not all(0 <= number <= MOST for number in numbers):
        return None

    return dict(zip(CRITERIA, numbers, strict=True))
