"""ConvoMem's judge: a prompt for each kind of evidence, and a reply of one word."""

from memeval.datasets.convomem.schema import ABSTENTION, IMPLICIT, PREFERENCE, USER
from memeval.datasets.longmemeval.judge import YesNoJudge
from memeval.records import EvalQuestion


class ConvoMemJudge(YesNoJudge):
    """Right if and only if the model says yes, under the prompt for the question's evidence.

    Source: SalesforceAIResearch/ConvoMem, `AnsweringEvaluation.scala`. The published prompts also
    quote the messages with a user's facts; memeval shows those to no judge.
    """

    name = "convomem"
    benchmark = "convomem"
    judges_refusals = True
    kinds = ("fact", "several", "rubric", "abstention")
    """`several` is for facts that a user stated in more than one message; the gold of `rubric`
    describes a response that suits the user.
    """
    prompts = "memeval.datasets.convomem"

    @staticmethod
    def kind_of(question: EvalQuestion) -> str:
        if question.category == ABSTENTION:
            return "abstention"
        if question.category in (PREFERENCE, IMPLICIT):
            return "rubric"

        # As published, small omissions are accepted only for user facts from several messages.
        is_several = question.facets.get("n_evidence", "1") != "1"
        return "several" if question.category == USER and is_several else "fact"
