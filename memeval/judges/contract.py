"""The judge contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from memeval.metrics.refusal import is_refusal
from memeval.records import EvalQuestion, Label, Verdict

Metrics = Mapping[str, float | None]
"""The free metrics of an answer, by name; see `memeval.metrics.answer`."""


class Judge(ABC):
    """Judges one answer at a time, against gold."""

    name: ClassVar[str]
    needs_model: ClassVar[bool] = False
    """True for judges that are models themselves."""
    wording_sha256: str | None = None
    """Of a model judge's prompt; None for the others."""

    @abstractmethod
    async def judge(self, question: EvalQuestion, answer: str, metrics: Metrics) -> Verdict:
        """The verdict on an answer to an answerable question; `unscored` where the judge's own reply can't be read.

        Raises `ModelError` where the judge's call failed for good.
        """

    def verdict(self, answer: str, *, right: bool, score: float, reason: str = "") -> Verdict:
        """A verdict of this judge; a wrong answer that refuses counts as abstained."""
        label = Label.CORRECT if right else Label.ABSTAINED if is_refusal(answer) else Label.WRONG
        return Verdict(self.name, label, score, reason)


def refusal_verdict(metrics: Metrics) -> Verdict:
    """The verdict on a question that has no answer, whatever the judge: right iff the answer refuses, by LoCoMo's official rule."""
    right = metrics["token_f1"] == 1.0
    return Verdict("official_refusal", Label.CORRECT if right else Label.WRONG, float(right))
