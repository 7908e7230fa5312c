"""Evidence for each choice in the sentences of a context, by words and by dates."""

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memeval.llm.extractive.dates import day_text, moments
from memeval.llm.extractive.events import approximate_day
from memeval.llm.extractive.questions import ExpectedAnswer, ParsedQuestion, analyse
from memeval.llm.extractive.ranking import ContextIndex, Ranking, index, rank
from memeval.llm.extractive.words import NUMBERS, STOP_WORDS, TOKEN, stem
from memeval.records import MONTHS

Scores = NDArray[np.float64]

DEPTH = 15
"""Number of best sentences whose words count for a choice."""
WEIGHTS = {"near": 1.0, "wide": 0.4, "named": 0.3, "read": 0.6, "dated": 1.5}
"""The weight of each kind of evidence.

near: the largest share of the choice's words (by idf) in one turn, times the relevance of that turn
to the question; wide: their share in all turns found together; named: their share in everything
said by the people whom the question names; read: the overlap of the choice with the reader's
free-text answer; dated: how near the choice's date is to the dates of the turns found.
"""
DAYS = 10.0
"""Days of distance at which a date counts 1/e as much as an exact one."""

_DIGITS = {
    word: str(value) for word, value in NUMBERS.items() if value > 1 or word in ("zero", "one")
}
_SPELT = {digits: stem(word) for word, digits in reversed(_DIGITS.items())}
_ISO = re.compile(r"\b((?:19|20)\d{2})-(\d{2})-(\d{2})\b")
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
_DAY_MONTH = re.compile(r"\b(\d{1,2}) (" + "|".join(MONTHS) + r")\b")


def evidence_for(
    question_text: str, choices: Sequence[str], context: tuple[str, ...], answer: str
) -> Scores:
    """Weighted evidence per choice, shape (choices,); `answer` is the reader's free-text one."""
    question, read_context = analyse(question_text), index(context)
    ranking = rank(question, read_context, DEPTH)
    asked = {*question.terms, *map(stem, question.names)}
    turns = _turns(read_context, ranking)
    all_words = frozenset().union(*(words for _, words in turns))
    named = _stems_said_by(question, read_context)
    dated = _date(question, choices, read_context, ranking)
    replied = terms(answer)
    rows = []

    for choice, date_score in zip(choices, dated, strict=True):
        choice_terms = terms(choice)
        weights = {term: read_context.idf(term) for term in choice_terms - asked or choice_terms}
        near = max((bearing * _share(weights, words) for bearing, words in turns), default=0.0)
        f1 = 2 * len(choice_terms & replied) / (len(choice_terms) + len(replied) or 1)
        # In the order of `WEIGHTS`.
        rows.append((near, _share(weights, all_words), _share(weights, named), f1, date_score))

    weighted: Scores = np.array(rows) @ np.array(list(WEIGHTS.values()))
    return weighted


def terms(text: str) -> frozenset[str]:
    """Stems of the content words, numbers as digits; the words themselves if all are stop words."""
    words = [word.lower().replace("’", "'") for word in TOKEN.findall(text) if word[0].isalnum()]
    content = [_DIGITS.get(word) or stem(word) for word in words if word not in STOP_WORDS]
    return frozenset(content or words)


def _turns(context: ContextIndex, ranking: Ranking) -> list[tuple[float, frozenset[str]]]:
    """Relevance of each turn found, relative to the best, and the turn's stems and stop words."""
    bearings: dict[int, float] = {}
    for number, score in zip(ranking.best, ranking.scores, strict=True):
        bearing = 0.0
        if ranking.scores[0] > 0:
            bearing = max(score, 0.0) / ranking.scores[0]

        bearings.setdefault(int(context.turns[number]), bearing)

    turns = []
    for turn, bearing in bearings.items():
        first, last = np.searchsorted(context.turns, [turn, turn + 1])
        words: set[str] = set()
        for sentence in context.sentences[first:last]:
            words |= sentence.terms
            # Short answers may be among the stop words: `yes`, `no`, `always`.
            words |= STOP_WORDS.intersection(sentence.words)

        turns.append((bearing, frozenset(words)))

    return turns


def _stems_said_by(question: ParsedQuestion, context: ContextIndex) -> frozenset[str]:
    """Stems said by the people whom the question names; empty if none of them speaks."""
    stems: set[str] = set()
    for name in question.names & context.spoken.keys():
        for position in context.spoken[name]:
            stems |= context.sentences[position].terms

    return frozenset(stems)


def _share(weights: dict[str, float], words: frozenset[str]) -> float:
    """The share of the weight whose terms are in `words`; a number also matches as a word."""
    # `fsum`, because a plain sum depends on the order of its terms, and the order of a set of
    # strings changes from one process to the next.
    total = math.fsum(weights.values())
    if not total:
        return 0.0

    shared = (
        weight for term, weight in weights.items() if term in words or _SPELT.get(term) in words
    )
    return math.fsum(shared) / total


def _date(
    question: ParsedQuestion, choices: Sequence[str], context: ContextIndex, ranking: Ranking
) -> list[float]:
    """Choices' nearness to dates found; 0 unless a time is asked for or at least half have one."""
    written = list(map(_spell, choices))
    if question.kind is not ExpectedAnswer.WHEN and 2 * sum(map(bool, written)) < len(choices):
        return [0.0] * len(choices)

    dates = list(_found_dates(context, ranking))
    evidence = []
    for day in written:
        nearest = 0.0
        if day:
            nearest = max((bearing * _nearness(day, date) for bearing, date in dates), default=0.0)

        evidence.append(nearest)

    return evidence


def _found_dates(context: ContextIndex, ranking: Ranking) -> list[tuple[float, str]]:
    """Dates of the sentences found, each with the relevance of its sentence."""
    dates = []
    for number, score in zip(ranking.best, ranking.scores, strict=True):
        if ranking.scores[0] <= 0 or score <= 0:
            break

        sentence, bearing = context.sentences[number], score / ranking.scores[0]
        named = moments(sentence.text, sentence.said_on)
        dates += [(bearing, moment.text) for moment in named]
        # A sentence without a date is most likely about the day on which it was said.
        if sentence.said_on and not named:
            dates.append((0.7 * bearing, day_text(sentence.said_on)))

    return dates


def _spell(choice: str) -> str:
    """A choice's date as `dates` writes it, with the words before it; empty if it has no date."""
    text = _ISO.sub(
        lambda match: f"{int(match[3])} {MONTHS[(int(match[2]) - 1) % 12]} {match[1]}", choice
    )
    named = moments(text, None)
    if named:
        return f"{text[: named[-1].start]}{named[-1].text}".strip()
    if _YEAR.search(text) or _DAY_MONTH.search(text):
        return text.strip()

    return ""


def _nearness(choice: str, date: str) -> float:
    """1 for the same date; else in [0, 1): higher for nearer days, lower for unequal precision."""
    if choice.casefold() == date.casefold():
        return 1.0

    first, second = approximate_day(choice), approximate_day(date)
    if first is None or second is None:
        return 0.5 if set(_YEAR.findall(choice)) & set(_YEAR.findall(date)) else 0.0

    alike = 0.9 if _single_day(choice) == _single_day(date) else 0.6
    return alike * math.exp(-abs((first - second).days) / DAYS)


def _single_day(text: str) -> bool:
    """Whether the text names a single day, such as `7 May 2023`, and not a week or a month."""
    return bool(_DAY_MONTH.search(text)) and not re.search(
        r"\b(?:week|weekend|month|year)s?\b", text
    )
