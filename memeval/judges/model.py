"""What the judges that are models share: the call, and how a label is read from the reply."""

from __future__ import annotations

import json
import re

from memeval.judges.contract import Judge, Metrics
from memeval.llm.contract import JudgePrompt, LanguageModel
from memeval.prompts import Wording, from_file, shipped
from memeval.records import EvalQuestion, Label, Role, Verdict

_LABEL = re.compile(r'"label"\s*:\s*"\s*(correct|wrong)\s*"', re.IGNORECASE)
_REASON = re.compile(r'"reason(?:ing)?"\s*:\s*("(?:[^"\\]|\\.)*")')


class ModelJudge(Judge):
    """Asks a model for JSON with a `label`; the last label wins, and a reply without one leaves the answer unscored."""

    needs_model = True

    def __init__(self, model: LanguageModel, wording: Wording, seed: int = 0) -> None:
        self.wording_sha256 = wording.sha256
        self._model, self._wording, self._seed = model, wording, seed

    @classmethod
    def wording(cls, prompt_file: str | None) -> Wording:
        """Our words, or those of a file of the user's. Raises `UserError` where that file can't be read or lacks a field."""
        return from_file(prompt_file, ("question", "gold", "answer")) if prompt_file else shipped(f"judge_{cls.name}")

    async def judge(self, question: EvalQuestion, answer: str, metrics: Metrics) -> Verdict:
        prompt = JudgePrompt(question.text, question.gold, answer, self._wording.system, self._wording.user)
        reply = (await self._model.complete(prompt, role=Role.JUDGE, seed=self._seed)).text
        label = read_label(reply)
        if label is None:
            return Verdict(self.name, Label.UNSCORED, None, f"no label in the judge's reply: {reply[:200]}")
        right = label is Label.CORRECT
        return self.verdict(answer, right=right, score=float(right), reason=_reason(reply))


def read_label(reply: str) -> Label | None:
    """The last `"label": "CORRECT"` or `"WRONG"` of a reply; None where there is none. Words outside of such a field are not labels."""
    found = _LABEL.findall(reply)
    return None if not found else Label.CORRECT if found[-1].lower() == "correct" else Label.WRONG


def _reason(reply: str) -> str:
    found = _REASON.search(reply)
    try:
        return str(json.loads(found[1])) if found else ""
    except ValueError:
        return ""
