"""Takes the verdicts that another program recorded with its answers."""

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

from memeval.errors import MemevalError, UserError
from memeval.judges.contract import Judge, JudgeContext, Metrics
from memeval.records import EvalQuestion, Label, Verdict
from memeval.results.judge import RECORDED


class RecordedJudge(Judge):
    """Returns recorded verdicts, and judges nothing itself."""

    name: ClassVar[str] = RECORDED
    answers = frozenset()
    judges_refusals: ClassVar[bool] = True
    judges_blanks: ClassVar[bool] = True

    def __init__(self, judged_by: str, votes: Mapping[str, tuple[Label, ...]]) -> None:
        """`votes` contains one or more verdicts of `judged_by` for each question."""
        self.judged_by = judged_by
        self._votes = votes

    @classmethod
    def build(cls, context: JudgeContext) -> Judge:
        raise UserError(
            "judge=recorded reads verdicts from an answer file",
            "use:  python -m memeval evaluate ANSWERS.jsonl dataset=locomo judge=recorded",
        )

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        """The recorded verdict; of several, the most frequent one.

        Raises `MemevalError` if there is none, and for a tie.
        """
        votes = self._votes.get(question.question_id, ())
        if not votes:
            raise MemevalError("its row has no verdict")

        counts = Counter(votes)
        label, most = counts.most_common(1)[0]
        if list(counts.values()).count(most) > 1:
            raise MemevalError(f"its {len(votes)} recorded verdicts are a tie")

        score = float(label is Label.CORRECT)
        several = votes if len(votes) > 1 else ()
        return Verdict(judge=self.judged_by, label=label, score=score, votes=several)
