"""MemoryAgentBench's judge: the metric of each sub-data set."""

from collections.abc import Sequence
from typing import ClassVar

from memeval.datasets.longmemeval.judge import (
    ABSTENTION,
    KIND_OF,
    KINDS,
    LongMemEvalJudge,
    YesNoJudge,
)
from memeval.datasets.memory_agent_bench.metrics import CHAT, RULES, SUMMARY, metric_of
from memeval.errors import UserError
from memeval.judges.contract import Metrics
from memeval.judges.reading import read_numbers
from memeval.llm.contract import Completion
from memeval.llm.prompts import PromptTemplate, load_builtin
from memeval.records import EvalQuestion, Verdict

PASS_MARK = 0.5
"""Minimum score of a summary that counts as right."""
TYPE_FACET = "question_type"
COUNTS = ("fluent", "conveyed", "points", "supported", "sentences")
"""Counts that a model makes for a summary, by their names in its reply."""


class MemoryAgentBenchJudge(YesNoJudge):
    """Right by the sub-data set's metric, whose value is the score.

    Only summaries and questions about chats need a model.

    Substring and exact match are right at 1. For recommendations, all wanted titles must be among
    the first five, and recall is the score. Questions about chats are judged by LongMemEval's
    rules. A summary's score is 0 if it is not fluent, else the F1 of the key points that it conveys
    and of its sentences that the reference supports; it is right at `PASS_MARK` or more. Source: Hu
    et al., 2025.
    """

    name = "memory_agent_bench"
    benchmark = "memory_agent_bench"
    needs_model: ClassVar[bool] = False
    judges_refusals = True
    kinds = (*KINDS, SUMMARY)

    @classmethod
    def parts(cls) -> dict[str, PromptTemplate]:
        """LongMemEval's templates, and one for summaries."""
        summary = load_builtin("judge_memory_agent_bench_summary", __package__)
        return {**LongMemEvalJudge.parts(), SUMMARY: summary}

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        metric = metric_of(str(question.category))
        if metric in RULES:
            score = RULES[metric](answer, question.gold)
            return self.verdict(answer, right=score == 1.0, score=score, reason=metric)

        if metric == CHAT:
            return await super().judge(question, answer, metrics, tried)
        if metric == SUMMARY:
            return await self._summary(question, answer, tried)

        raise UserError(
            f"judge=memory_agent_bench has no metric for the sub-data set '{question.category}'"
        )

    @staticmethod
    def kind_of(question: EvalQuestion) -> str:
        """The kind of prompt template that judges a question about chats."""
        if not question.answerable:
            return ABSTENTION

        return KIND_OF.get(question.facets.get(TYPE_FACET, ""), "fact")

    async def _summary(self, question: EvalQuestion, answer: str, tried: int) -> Verdict:
        prompt = self._prompt(question, answer, self._template.parts[SUMMARY])

        def read(reply: Completion) -> Verdict | None:
            counts = read_counts(reply.whole, answer, prompt.quotable)
            if counts is None:
                return None

            score = summary_score(*counts)
            return self.verdict(
                answer, right=score >= PASS_MARK, score=score, reason=" ".join(map(str, counts))
            )

        return await self._take_votes(prompt, read, tried)


def read_counts(
    reply: str, answer: str = "", quotable: Sequence[str] = ()
) -> tuple[int, int, int, int, int] | None:
    """The five counts in the only JSON object of a reply; None if one is missing or impossible, or
    if the object is in the answer or in a text shown with it.
    """
    counts = read_numbers(reply, COUNTS, answer=answer, quotable=quotable)
    if counts is None:
        return None

    fluent, conveyed, points, supported, sentences = counts
    possible = fluent in (0, 1) and conveyed <= points and supported <= sentences and points > 0
    return (fluent, conveyed, points, supported, sentences) if possible else None


def summary_score(fluent: int, conveyed: int, points: int, supported: int, sentences: int) -> float:
    """F1 of conveyed points (recall) and supported sentences (precision), in [0, 1]; 0.0 if the
    summary is not fluent.
    """
    if not fluent or not conveyed or not supported:
        return 0.0

    # Computed on integers, so that an exact half stays exact: 2rp / (r + p) with r =
    # conveyed/points, p = supported/sentences.
    return 2 * conveyed * supported / (conveyed * sentences + supported * points)
