"""The strict judge."""

from __future__ import annotations

from memeval.judges.model import ModelJudge
from memeval.records import AnswerKind


class StrictJudge(ModelJudge):
    """Right only if the answer states what the gold states; vague, partial and hedged answers are
    wrong.
    """

    name = "llm"
    usual_for = frozenset({AnswerKind.SENTENCES})
