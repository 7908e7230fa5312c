"""Accuracy of choosing: compares the choices that a reply names with the right ones."""

from typing import ClassVar

from memeval.judges.contract import Judge, Metrics
from memeval.metrics.choice import read_index
from memeval.metrics.letters import exact_set, jaccard, read_letters
from memeval.records import AnswerKind, ChoiceLabels, EvalQuestion, Label, Verdict

SHOWN = 80
"""Characters of an unreadable reply that its reason quotes."""


class AccuracyJudge(Judge):
    """Right iff the reply names all right choices and no others.

    A reply that can't be read is unparsed, not wrong.

    The score is 1 or 0 for a question with one right choice. If several may be right, it is the
    overlap |chosen and right| / |chosen or right| (Jaccard). A choice that is listed twice is right
    at both positions. It uses no metric of the answer's words.
    """

    name: ClassVar[str] = "accuracy"
    answers = usual_for = frozenset({AnswerKind.CHOICES})
    judges_refusals: ClassVar[bool] = True

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        chosen = read_choices(question, answer)
        # On 50 real replies, three ways of reading gave 24, 60 and 74 % right: nothing is guessed.
        if chosen is None:
            quoted = " ".join(answer.split())
            if len(quoted) > SHOWN:
                quoted = f"{quoted[: SHOWN - 1]}…"

            return self.unscored(f"names no choice: '{quoted}'")

        # By their texts: a choice that is listed twice is right at both positions.
        texts = frozenset(question.choices[position] for position in chosen)
        right = frozenset(question.choices[position] for position in question.right_choices)
        score = jaccard if question.multi_select else exact_set
        chosen_labels = ", ".join(map(question.choice_labels.label, chosen))
        label = Label.CORRECT if texts == right else Label.WRONG
        return Verdict(
            judge=self.name,
            label=label,
            score=score(texts, right),
            reason=f"read as {chosen_labels}",
            chosen=chosen,
        )


def read_choices(question: EvalQuestion, reply: str) -> tuple[int, ...] | None:
    """Positions of the choices that a reply names, ascending; None if it can't be read."""
    if question.choice_labels is ChoiceLabels.LETTERS:
        return read_letters(reply, question.choices, multi_select=question.multi_select)

    index = read_index(reply, question.choices)
    return None if index is None else (index,)
