"""Two judges of your own: one applies a rule, the other asks a model."""

from __future__ import annotations

from pathlib import Path

from memeval.judges.contract import Judge, Metrics
from memeval.judges.model import ModelJudge
from memeval.llm.prompts import PromptTemplate, from_file
from memeval.records import EvalQuestion, Verdict


class Contains(Judge):
    """Right if the answer contains a gold."""

    name = "contains"

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        found = any(gold.lower() in answer.lower() for gold in question.gold)
        return self.verdict(answer, right=found, score=float(found), reason="looked for the gold")


class Patient(ModelJudge):
    """Asks the judge's model, with the prompt template next to this file."""

    name = "patient"

    @classmethod
    def template(cls, prompt_file: str | None) -> PromptTemplate:
        file = prompt_file or str(Path(__file__).with_name("patient.txt"))
        return from_file(file, ("question", "gold", "answer"))
