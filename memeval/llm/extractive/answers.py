"""From a question and a context to an answer: the kind of the question decides how it is read off the best sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from memeval.llm.extractive.dates import Moment, day_text, moments
from memeval.llm.extractive.questions import Kind, Question, analyse
from memeval.llm.extractive.ranking import Index, Ranking, index, rank
from memeval.llm.extractive.scoring import Candidates, candidates, scores
from memeval.llm.extractive.sentences import Sentence
from memeval.llm.extractive.words import stem

NO_ANSWER = "No information available"
"""What the reader says where the context does not tell."""

DEPTH = 6
"""Sentences whose spans are weighed."""

LEAST_COVERAGE = 0.1
COVERAGE_PER_DECADE = 0.1
"""The share of the question's stems that one turn must hold for an answer grows with each tenfold of turns, as chance overlap does."""

UNNAMED = 0.1
STRANGER = 0.25
"""More of it is asked for where the question names nobody who speaks, and still more where it names somebody whom the context never does."""

SWAPPED = 0.2
"""Where turns of people whom the question doesn't name hold so much more of it than those of people it names, it speaks of the wrong person."""

LIST_ITEMS = 3
LIST_MARGIN = 1.5
"""A list takes up to `LIST_ITEMS` spans of different turns, none scored further below the best than the margin."""

NEGATIONS = frozenset("not no never don't didn't doesn't isn't aren't wasn't weren't haven't hasn't hadn't can't couldn't won't nope".split())


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer and the sentence that it rests on."""

    answer: str
    support: Sentence | None = None
    """None where the reader abstains."""


def read(text: str, context: tuple[str, ...]) -> Reading:
    """The answer to a question from the units of a context."""
    question, read_context = analyse(text), index(context)
    ranking = rank(question, read_context, DEPTH)
    if not _bears(question, read_context, ranking):
        return Reading(NO_ANSWER)
    if question.kind is Kind.WHEN:
        return _when(read_context, ranking)
    if question.kind is Kind.YES_NO:
        return _yes_no(question, read_context, ranking)
    if question.kind is Kind.EITHER:
        return _either(question, read_context, ranking)
    return _span(question, read_context, ranking)


def _bears(question: Question, context: Index, ranking: Ranking) -> bool:
    """Whether the context tells anything of what is asked."""
    if not ranking.best:
        return False
    least = LEAST_COVERAGE + COVERAGE_PER_DECADE * math.log10(1 + int(context.turns[-1]))
    if not question.names & context.spoken.keys():
        met = any(stem(name) in context.postings for name in question.names)
        least += UNNAMED if met or not question.names else STRANGER
    return ranking.coverage_named >= least and ranking.coverage - ranking.coverage_named <= SWAPPED


def _when(context: Index, ranking: Ranking) -> Reading:
    """The date of the best sentence that has one, of its turn, or the day on which the best sentence was said."""
    for number in ranking.best:
        if ranking.scores[ranking.best.index(number)] < 0.6 * ranking.scores[0]:
            break
        moment = _moment(context, number, ranking)
        if moment is not None:
            return Reading(moment.text, context.sentences[number])
    best = context.sentences[ranking.best[0]]
    return Reading(day_text(best.time.date()), best) if best.time else Reading(NO_ANSWER)


def _moment(context: Index, number: int, ranking: Ranking) -> Moment | None:
    """The when-expression nearest to the question's words in a sentence, else the first one in the rest of its turn."""
    sentence = context.sentences[number]
    said = sentence.time.date() if sentence.time else None
    if found := moments(sentence.text, said):
        asked = [start for (start, _), term in zip(sentence.spans, sentence.stems, strict=True) if term in ranking.weights]
        return min(found, key=lambda moment: min((abs(moment.start - place) for place in asked), default=0))
    turn = np.flatnonzero(context.turns == context.turns[number])
    return next((moment for place in turn for moment in moments(context.sentences[place].text, said)), None)


def _yes_no(question: Question, context: Index, ranking: Ranking) -> Reading:
    best = context.sentences[ranking.best[0]]
    answer = "No" if NEGATIONS & set(best.words) else "Yes"
    return Reading(f"Likely {answer.lower()}" if question.likely else answer, best)


def _either(question: Question, context: Index, ranking: Ranking) -> Reading:
    """The option that the context speaks of more."""
    support = [sum(len(context.postings.get(stem(word), ())) for word in option.split()) for option in question.options]
    return Reading(question.options[int(np.argmax(support))], context.sentences[ranking.best[0]])


def _span(question: Question, context: Index, ranking: Ranking) -> Reading:
    found = candidates(question, context, ranking)
    if len(found.starts) == 0:
        return Reading(NO_ANSWER)
    scored = scores(found)
    best = int(np.argmax(scored))
    chosen = _items(found, scored, context, ranking) if question.kind is Kind.LIST else [best]
    return Reading(", ".join(found.text(number) for number in chosen), found.sentences[found.owner[best]])


def _items(found: Candidates, scored: np.ndarray[tuple[int], np.dtype[np.float64]], context: Index, ranking: Ranking) -> list[int]:
    """The best candidate of each turn, best first."""
    chosen: list[int] = []
    turns: set[int] = set()
    for number in (int(place) for place in np.argsort(-scored, kind="stable")):
        if len(chosen) == LIST_ITEMS or scored[number] < np.max(scored) - LIST_MARGIN:
            break
        turn = int(context.turns[ranking.best[found.owner[number]]])
        if turn not in turns:
            turns.add(turn)
            chosen.append(number)
    return chosen
