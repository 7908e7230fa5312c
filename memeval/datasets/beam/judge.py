"""BEAM's judge: scores each item of a question's rubric separately, and the order of events."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from memeval.datasets.beam.metrics import (
    EVENT_ORDERING,
    ITEMS,
    ORDER,
    line_events,
    rubric_score,
    tau_norm,
)
from memeval.errors import UserError
from memeval.judges.contract import Metrics
from memeval.judges.model import CUT, ModelJudge, VerdictReader
from memeval.judges.reading import read_reason, read_score, read_yes, words_for
from memeval.llm.contract import Completion, JudgePrompt
from memeval.records import EvalQuestion, Verdict

ITEM, EVENT = KINDS = ("item", "event")
"""Prompt templates: an answer against one item, and one line of an answer against one event."""
SCORES = (0.0, 0.5, 1.0)
PASS_MARK = 0.5
"""Minimum score for the label `correct`; metrics use the score itself."""
EVENT_TOKENS = 10
"""Maximum number of tokens of a yes-or-no reply."""


class BeamJudge(ModelJudge):
    """Asks a model for 0, 0.5 or 1 for each item of the rubric; the score is their mean.

    The score of event ordering is `tau_norm`: the model decides which lines of the answer match
    which events. Each item takes one call, and each line up to one call per event. If a reply can't
    be read even after retries, the answer is unscored. Source: Tavakoli et al., ICLR 2026; its
    judge is gpt-4.1-mini at temperature 0, and sees neither the question nor the reference.
    """

    name = "beam"
    benchmark = "beam"
    judges_refusals = True
    counts_rubrics: ClassVar[bool] = True
    kinds = KINDS
    fields = ("gold", "answer")
    prompts = "memeval.datasets.beam"

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        if not question.rubric:
            raise UserError(
                f"judge=beam needs rubrics, but question {question.question_id} has none",
                "use:  judge=llm",
            )

        # A call for each item, as in the official scorer: 6,046 for all tiers.
        scores: list[float] = []
        for item in question.rubric:
            verdict = await self._judge_item(question, item, answer, tried)
            if verdict.score is None:
                return verdict

            scores.append(verdict.score)

        if question.category == EVENT_ORDERING:
            # The official scorer also judges the items of event ordering: it stores that score, but
            # reports `tau_norm`.
            return await self._judge_order(question, answer, scores, tried)

        score = rubric_score(scores, self._settings.scoring)
        return self._with_findings(answer, score, {ITEMS: tuple(scores)})

    async def _judge_item(
        self, question: EvalQuestion, item: str, answer: str, tried: int
    ) -> Verdict:
        template = self._template.parts[ITEM]
        prompt = self._prompt(replace(question, gold=(item,)), answer, template)
        # The prompt does not show the question.
        quotable = (prompt.reference,)

        def read(reply: Completion) -> Verdict | None:
            score = read_score(
                reply.whole, SCORES, answer=answer, prompt=prompt.template, quotable=quotable
            )
            if score is None:
                return None

            reason = read_reason(reply.whole, answer=answer, quotable=quotable)
            right = score == 1
            return self.verdict(answer, right=right, score=score, reason=reason, abstains=False)

        return await self._decide(prompt, read, tried)

    async def _judge_order(
        self, question: EvalQuestion, answer: str, scores: Sequence[float], tried: int
    ) -> Verdict:
        """The verdict on the order of events. Each line is matched to the first event that the
        model calls the same, among those not yet matched.
        """
        # As published, headers and blank lines count as lines of the answer, and lower its score.
        lines = list(map(str.strip, answer.split("\n")))
        free = list(range(len(question.rubric)))
        matches: list[int | None] = [None] * len(lines)
        for position, line in enumerate(lines):
            # A blank line counts as a line, but needs no call to the model.
            if not line:
                continue

            for number in free:
                verdict = await self._judge_event(question, question.rubric[number], line, tried)
                if verdict.score is None:
                    return verdict
                if verdict.score == 1:
                    matches[position] = number
                    free.remove(number)
                    break

        events = line_events(lines, matches, question.rubric)
        return self._with_findings(
            answer,
            tau_norm(events, len(question.rubric)),
            {ITEMS: tuple(scores), ORDER: tuple(map(float, events))},
        )

    async def _judge_event(
        self, question: EvalQuestion, event: str, line: str, tried: int
    ) -> Verdict:
        """Verdict on whether a line names an event: score 1 or 0."""
        template = self._template.parts[EVENT]
        prompt = self._prompt(
            replace(question, gold=(event,)),
            line,
            template,
            max_tokens=EVENT_TOKENS,
            words=words_for(line),
        )

        def read(reply: Completion) -> Verdict | None:
            same = read_yes(
                reply.whole,
                cut=reply.finish_reason == CUT,
                answer=line,
                quotable=(prompt.reference,),
                words=prompt.words,
            )
            if same is None:
                return None

            return self.verdict(line, right=same, score=float(same), abstains=False)

        return await self._decide(prompt, read, tried)

    async def _decide(self, prompt: JudgePrompt, read: VerdictReader, tried: int) -> Verdict:
        """The vote with the score of the majority; without a majority the answer is unscored."""
        votes, tries = await self._vote_all(prompt, read, tried)
        scores = [vote.score for vote in votes]
        score, count = Counter(scores).most_common(1)[0]
        majority = votes[scores.index(score)]
        if score is not None and 2 * count > len(votes):
            return replace(majority, tries=tries)

        reason = majority.reason
        if len(votes) > 1:
            reason = f"no majority: {', '.join(map(_score_text, scores))}"

        return self.unscored(reason, tries=tries)

    def _with_findings(
        self, answer: str, score: float, parts: dict[str, tuple[float, ...]]
    ) -> Verdict:
        """The verdict with the model's finding for each part."""
        reasons = []
        for name, values in parts.items():
            reasons.append(f"{name}: {', '.join(map(_score_text, values))}")

        verdict = self.verdict(
            answer, right=score >= PASS_MARK, score=score, reason="; ".join(reasons)
        )
        return replace(verdict, graded=True, parts=parts)


def _score_text(score: float | None) -> str:
    return "unread" if score is None else f"{score:g}"
