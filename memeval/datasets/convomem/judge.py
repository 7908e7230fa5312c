"""ConvoMem's judge: a prompt for each kind of evidence, and a reply of one word."""

from __future__ import annotations

from memeval.datasets.convomem.schema import ABSTENTION, IMPLICIT, PREFERENCE, USER
from memeval.datasets.longmemeval.judge import YesNoJudge
from memeval.records import EvalQuestion


class ConvoMemJudge(YesNoJudge):
    """Right if and only if the model says yes, under the prompt for the question's evidence.

    Source: SalesforceAIResearch/ConvoMem, `AnsweringEvaluation.scala`. Its prompts also quote the
    messages of a user's facts, which no judge of memeval is shown.
    """

    name = "convomem"
    benchmark = "convomem"
    judges_refusals = True
    kinds = ("fact", "several", "rubric", "abstention")
    """`several` is for what a user said in more than one message; the gold of `rubric` says what a
    response does that suits the user.
    """
    prompts = "memeval.datasets.convomem"

    @staticmethod
    def kind_of(question: EvalQuestion) -> str:
        if question.category == ABSTENTION:
            return "abstention"
        if question.category in (PREFERENCE, IMPLICIT):
            return "rubric"

        # As published, only facts of the user are forgiven small omissions if they are many.
        is_several = question.facets.get("n_evidence", "1") != "1"
        return "several" if question.category == USER and is_several else "fact"
