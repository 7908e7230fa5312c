"""Answers a question from a context, by the kind of question."""

import math
import re
from collections.abc import Callable
from datetime import date, datetime

import numpy as np
from msgspec import Struct

from memeval.llm.extractive.dates import Moment, day_text, moments
from memeval.llm.extractive.events import elapsed_time, event_day
from memeval.llm.extractive.quantities import asks_length, count, duration
from memeval.llm.extractive.questions import ExpectedAnswer, ParsedQuestion, analyse
from memeval.llm.extractive.ranking import ContextIndex, Ranking, index, rank
from memeval.llm.extractive.scoring import Candidates, candidates, scores
from memeval.llm.extractive.sentences import Sentence
from memeval.llm.extractive.words import NUMBERS, stem

# The official scorer of LoCoMo looks for these words in answers to category 5.
NO_ANSWER = "No information available"
"""The reader's answer if the context contains no answer."""
DEPTH = 6
"""Number of best sentences from which the answer is taken."""
MIN_COVERAGE = 0.1
COVERAGE_PER_DECADE = 0.1
"""Minimum share of the question's stems in one turn; grows with each tenfold of turns."""
UNNAMED = 0.1
STRANGER = 0.25
"""Added to that share if no named person speaks; the second if no named person is mentioned."""
SWAPPED = 0.2
"""If other speakers' turns cover more of the question by this share, it names the wrong person."""
FAR_BEHIND = 0.6
NEARLY_AS_GOOD = 0.7
"""Shares of the best sentence's score."""
LIST_ITEMS = 3
LIST_MARGIN = 3.0
"""How far below the best score a span may be to join a list of up to `LIST_ITEMS` spans."""

_ORDER = re.compile(r"\b(?:first|earlier|earliest|last|later|most recent)")

NEGATIONS = frozenset(
    """
        not no never nope don't didn't doesn't isn't aren't wasn't weren't haven't hasn't hadn't
        can't couldn't won't
    """.split()
)


class SpanAnswer(Struct, frozen=True):
    """An answer and its supporting sentence."""

    answer: str
    support: Sentence | None = None
    """None if the reader abstains."""


def read(text: str, context: tuple[str, ...], asked_at: datetime | None = None) -> SpanAnswer:
    """The answer from a context; `asked_at` matters only for time passed since an event."""
    question, read_context = analyse(text), index(context)
    ranking = rank(question, read_context, DEPTH)
    if not _is_relevant(question, read_context, ranking):
        return SpanAnswer(NO_ANSWER)
    if span := elapsed_time(question.text, asked_at, read_context):
        return SpanAnswer(span, read_context.sentences[ranking.best[0]])

    return _READERS.get(question.kind, _span)(question, read_context, ranking)


def _is_relevant(question: ParsedQuestion, context: ContextIndex, ranking: Ranking) -> bool:
    if not ranking.best:
        return False

    if (
        question.kind in (ExpectedAnswer.YES_NO, ExpectedAnswer.EITHER)
        and ranking.coverage_named > 0
        and question.names & context.spoken.keys()
    ):
        return True

    least = MIN_COVERAGE + COVERAGE_PER_DECADE * math.log10(1 + int(context.turns[-1]))
    if not question.names & context.spoken.keys():
        met = any(stem(name) in context.postings for name in question.names)
        least += UNNAMED if met or not question.names else STRANGER

    return ranking.coverage_named >= least and ranking.coverage - ranking.coverage_named <= SWAPPED


def _when(question: ParsedQuestion, context: ContextIndex, ranking: Ranking) -> SpanAnswer:
    """The date in the best sentence that has one, or in its turn; otherwise the day it was said."""
    for number, score in zip(ranking.best, ranking.scores, strict=True):
        if score < FAR_BEHIND * ranking.scores[0]:
            break

        moment = _moment(question, context, number, ranking)
        if moment is not None:
            return SpanAnswer(moment.text, context.sentences[number])

    best = context.sentences[ranking.best[0]]
    if best.said_on is None:
        return SpanAnswer(NO_ANSWER)

    return SpanAnswer(day_text(best.said_on), best)


def _moment(
    question: ParsedQuestion, context: ContextIndex, number: int, ranking: Ranking
) -> Moment | None:
    """The time expression nearest to the question's words, or the turn's first one."""
    sentence = context.sentences[number]
    if named := moments(sentence.text, sentence.said_on):
        asked = [
            start
            for (start, _), term in zip(sentence.spans, sentence.stems, strict=True)
            if term in ranking.weights
        ]
        known = [moment for moment in named if moment.text not in question.dates] or named
        return min(
            known, key=lambda moment: min((abs(moment.start - start) for start in asked), default=0)
        )

    for position in np.flatnonzero(context.turns == context.turns[number]):
        if named := moments(context.sentences[position].text, sentence.said_on):
            return named[0]

    return None


def _yes_no(question: ParsedQuestion, context: ContextIndex, ranking: Ranking) -> SpanAnswer:
    best = context.sentences[ranking.best[0]]
    answer = "No" if NEGATIONS & set(best.words) else "Yes"
    if question.likely:
        answer = f"Likely {answer.lower()}"

    return SpanAnswer(answer, best)


def _either(question: ParsedQuestion, context: ContextIndex, ranking: Ranking) -> SpanAnswer:
    """The option that came first or last, if asked; otherwise the one mentioned more often."""
    best = context.sentences[ranking.best[0]]
    days = [event_day(option, context) for option in question.options]
    if None not in days and (order := _ORDER.search(question.text)):
        pick = max if order[0] in ("last", "most recent", "later") else min
        dated = zip(days, question.options, strict=True)
        _, option = pick(dated, key=lambda pair: pair[0] or date.min)
        return SpanAnswer(option, best)

    support = []
    for option in question.options:
        mentions = [context.postings.get(stem(word), ()) for word in option.split()]
        support.append(sum(map(len, mentions)))

    return SpanAnswer(question.options[int(np.argmax(support))], best)


def _count(question: ParsedQuestion, context: ContextIndex, ranking: Ranking) -> SpanAnswer:
    if quantity := _quantity(count, question, context, ranking):
        return quantity
    if asks_length(question.text):
        return _span(question, context, ranking)

    # The number of turns that mention it: a lower bound, as no number was said.
    turns = set()
    for number, score in zip(ranking.best, ranking.scores, strict=True):
        if score >= NEARLY_AS_GOOD * ranking.scores[0]:
            turns.add(int(context.turns[number]))

    spelt = next(word for word, value in NUMBERS.items() if value == len(turns))
    return SpanAnswer(spelt, context.sentences[ranking.best[0]])


def _duration(question: ParsedQuestion, context: ContextIndex, ranking: Ranking) -> SpanAnswer:
    return _quantity(duration, question, context, ranking) or _span(question, context, ranking)


def _quantity(
    find: Callable[[str, str], str | None],
    question: ParsedQuestion,
    context: ContextIndex,
    ranking: Ranking,
) -> SpanAnswer | None:
    """The first quantity of the best sentence that has one; far worse sentences are left out."""
    for number, score in zip(ranking.best, ranking.scores, strict=True):
        if score < FAR_BEHIND * ranking.scores[0]:
            break
        if quantity := find(context.sentences[number].text, question.text):
            return SpanAnswer(quantity, context.sentences[number])

    return None


def _span(question: ParsedQuestion, context: ContextIndex, ranking: Ranking) -> SpanAnswer:
    spans = candidates(question, context, ranking)
    if len(spans.starts) == 0:
        return SpanAnswer(NO_ANSWER)

    scored = scores(spans)
    best = int(np.argmax(scored))
    chosen = [best]
    if question.plural:
        chosen = _items(spans, scored, context, ranking)

    return SpanAnswer(", ".join(map(spans.text, chosen)), spans.sentences[spans.owner[best]])


def _items(
    spans: Candidates,
    scored: np.ndarray[tuple[int], np.dtype[np.float64]],
    context: ContextIndex,
    ranking: Ranking,
) -> list[int]:
    """The best candidate of each turn, best first."""
    chosen: list[int] = []
    turns: set[int] = set()

    for number in np.argsort(-scored, kind="stable").tolist():
        if len(chosen) == LIST_ITEMS or scored[number] < np.max(scored) - LIST_MARGIN:
            break

        turn = int(context.turns[ranking.best[spans.owner[number]]])
        if turn not in turns:
            turns.add(turn)
            chosen.append(number)

    return chosen


_READERS: dict[ExpectedAnswer, Callable[[ParsedQuestion, ContextIndex, Ranking], SpanAnswer]] = {
    ExpectedAnswer.WHEN: _when,
    ExpectedAnswer.YES_NO: _yes_no,
    ExpectedAnswer.EITHER: _either,
    ExpectedAnswer.COUNT: _count,
    ExpectedAnswer.DURATION: _duration,
}
"""The function for each kind of question; other kinds are answered by the best span."""
