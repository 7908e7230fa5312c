"""Chooses among given answers: each is scored by what of it the context tells, and where in the
context.

In English by the reader's own means (see `evidence_for`), in text without spaces between its words,
such as Chinese, by pairs of characters (see `grams`). Without a context that bears on the question,
a choice which says that there is no answer is taken, else the one that shares most with the
question. Equal scores are told apart by a hash of the choice's text: no position is preferred, and
the order of the choices plays no part.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime

import numpy as np

from memeval.llm.contract import ChoosePrompt
from memeval.llm.extractive.answers import NO_ANSWER, read
from memeval.llm.extractive.choice_evidence import evidence_for
from memeval.llm.extractive.grams import gram_scores, has_unspaced
from memeval.llm.extractive.words import STOP_WORDS, TOKEN, stem

MARGIN = 0.8
"""Where several may be chosen, all are that score at least this share of the best."""

_NO_ANSWER = re.compile(
    r"(?i)\W*(?:(?:it|this|the question) )?(?:is )?(?:not answerable|unanswerable|not mentioned|"
    r"not stated|no information|"
    r"not enough information|can(?:not|'t) be (?:answered|determined))\b"
)
"""Choices that say that there is no answer."""


def choose(prompt: ChoosePrompt) -> str:
    """The label of the best choice.

    Where several may be chosen, those of all that come near it, ascending, joined by commas.
    """
    scores = scored(prompt.question, prompt.choices, prompt.context, prompt.asked_at)
    order = sorted(
        range(len(scores)),
        key=lambda place: (-scores[place], _hash(prompt.question, prompt.choices[place])),
    )
    best = order[0]
    if not prompt.multi_select:
        return prompt.labels.label(best)

    near = [
        place for place in order if scores[place] > 0 and scores[place] >= MARGIN * scores[best]
    ]

    return ",".join(prompt.labels.label(place) for place in sorted(near or [best]))


def scored(
    question: str,
    choices: Sequence[str],
    context: tuple[str, ...],
    asked_at: datetime | None = None,
) -> list[float]:
    """A score for each choice, higher for a likelier one, whatever its position."""
    if has_unspaced(question + "".join(choices)):
        return gram_scores(question, choices, context)

    reading = read(question, context, asked_at)
    if reading.answer == NO_ANSWER:
        none = [float(bool(_NO_ANSWER.match(choice))) for choice in choices]
        if any(none):
            return none

    found = (
        evidence_for(question, choices, context, reading.answer)
        if context
        else np.zeros(len(choices))
    )

    return (
        [float(score) for score in found]
        if found.any()
        else [_count_shared(question, choice) for choice in choices]
    )


def _count_shared(question: str, choice: str) -> float:
    """The share of the choice's stems that the question holds."""
    asked, said = _stems(question), _stems(choice)
    return len(asked & said) / len(said) if said else 0.0


def _stems(text: str) -> frozenset[str]:
    words = (word.lower() for word in TOKEN.findall(text))
    return frozenset(stem(word) for word in words if word not in STOP_WORDS and word[0].isalnum())


def _hash(question: str, choice: str) -> str:
    return hashlib.sha256(f"{question}\n{choice}".encode()).hexdigest()
