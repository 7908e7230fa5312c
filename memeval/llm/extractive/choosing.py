"""Chooses among given answers: each is scored by the share of it that the context contains, and the
relevance of that part.

English is scored with the reader's own analysis (see `evidence_for`), and text without spaces
between its words, such as Chinese, by pairs of characters (see `grams`). If nothing in the context
is relevant to the question, a choice that says "no answer" is taken, else the choice that shares
most with the question. Equal scores are ordered by a hash of the choice's text: no position is
preferred, and the order of the choices does not matter.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from memeval.llm.contract import ChoosePrompt
from memeval.llm.extractive.answers import NO_ANSWER, read
from memeval.llm.extractive.choice_evidence import evidence_for
from memeval.llm.extractive.grams import gram_scores, has_unspaced
from memeval.llm.extractive.words import STOP_WORDS, TOKEN, stem
from memeval.text.names import text_digest

MARGIN = 0.8
"""Minimum share of the best score for a further choice, if several may be chosen."""

_NO_ANSWER = re.compile(
    r"(?i)\W*(?:(?:it|this|the question) )?(?:is )?(?:not answerable|unanswerable|not mentioned|"
    r"not stated|no information|"
    r"not enough information|can(?:not|'t) be (?:answered|determined))\b"
)
"""Choices that say that the question has no answer."""


def choose(prompt: ChoosePrompt) -> str:
    """The best choice's label; with `multi_select` also those near it, in order, with commas."""
    scores = choice_scores(prompt.question, prompt.choices, prompt.context, prompt.asked_at)

    def rank(position: int) -> tuple[float, str]:
        return -scores[position], text_digest(f"{prompt.question}\n{prompt.choices[position]}")

    order = sorted(range(len(scores)), key=rank)
    best = order[0]
    if not prompt.multi_select:
        return prompt.labels.label(best)

    least = MARGIN * scores[best]
    near = [position for position in order if scores[position] > 0 and scores[position] >= least]
    return ",".join(map(prompt.labels.label, sorted(near or [best])))


def choice_scores(
    question: str,
    choices: Sequence[str],
    context: tuple[str, ...],
    asked_at: datetime | None = None,
) -> list[float]:
    """A score for each choice, higher for a likelier one; its position does not count."""
    if has_unspaced(question + "".join(choices)):
        return gram_scores(question, choices, context)

    reading = read(question, context, asked_at)
    if reading.answer == NO_ANSWER:
        refusals = [float(bool(_NO_ANSWER.match(choice))) for choice in choices]
        if any(refusals):
            return refusals

    if context:
        evidence = evidence_for(question, choices, context, reading.answer)
        if evidence.any():
            return list(map(float, evidence))

    return [_count_shared(question, choice) for choice in choices]


def _count_shared(question: str, choice: str) -> float:
    """The share of the choice's stems that also occur in the question."""
    question_stems, choice_stems = _stems(question), _stems(choice)
    return len(question_stems & choice_stems) / (len(choice_stems) or 1)


def _stems(text: str) -> frozenset[str]:
    words = map(str.lower, TOKEN.findall(text))
    return frozenset(stem(word) for word in words if word not in STOP_WORDS and word[0].isalnum())
