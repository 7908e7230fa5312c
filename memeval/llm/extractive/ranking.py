"""Ranks sentences for a question by stems weighted by idf, in sentence, turn and neighbours."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memeval.llm.extractive.dates import day_text, month_text
from memeval.llm.extractive.questions import ParsedQuestion
from memeval.llm.extractive.sentences import Sentence, read_chunk
from memeval.llm.extractive.words import stem
from memeval.records import MONTHS

Scores = NDArray[np.float64]
Places = NDArray[np.int64]

EVIDENCE = tuple("own turn before after pairs speaks question dated preceding following".split())
"""Evidence for a sentence: the share of the question's idf weight in the sentence, in its turn, in
the turn before and in the turn after; how many of the question's stem pairs it contains; whether a
named person says it; whether it is a question itself; how near its date is to one that the question
names; and the share of the weight in the sentences right before and after it in its turn.
"""
IMPORTANCE = np.array([1.0, 0.5, 0.15, 0.05, 0.1, 0.3, -0.25, 0.3, 0.0, 0.0])
"""Weight of each kind of evidence in the choice of the best sentences."""


@dataclass(frozen=True, slots=True, eq=False)
class ContextIndex:
    """A context, split into sentences and indexed."""

    sentences: tuple[Sentence, ...]
    turns: Places
    """Number of each sentence's turn."""
    postings: Mapping[str, Places]
    """Numbers of the sentences with each stem, by stem."""
    spoken: Mapping[str, Places]
    """Numbers of the sentences of each speaker, by word of the speaker's name."""
    asking: Places
    """Numbers of the sentences that are questions."""

    def idf(self, term: str) -> float:
        """Rarity of a stem in the sentences: ln(1 + (n - df + 1/2) / (df + 1/2)), as in BM25+."""
        frequency = len(self.postings.get(term, ()))
        return math.log(1 + (len(self.sentences) - frequency + 0.5) / (frequency + 0.5))


class Ranking(Struct, frozen=True):
    """The sentences found for one question."""

    best: tuple[int, ...]
    """Numbers of the best sentences, best first; none that shares nothing with the question."""
    scores: tuple[float, ...]
    evidence: tuple[tuple[float, ...], ...]
    """Per best sentence, the values of `EVIDENCE`."""
    coverage: float
    """Largest share of the question's stems in one turn, in [0, 1]."""
    coverage_named: float
    """The same among turns of people that the question names; `coverage` if it names none."""
    weights: Mapping[str, float]
    """The question's stems with their idf, without names of people who speak."""


@lru_cache(maxsize=16)
def index(context: tuple[str, ...]) -> ContextIndex:
    """The index of a context; cached, since many questions are asked about the same context."""
    sentences: list[Sentence] = []
    turns: list[int] = []
    turn = -1

    for chunk in context:
        line = -1
        for sentence in read_chunk(chunk):
            turn += sentence.line != line
            line = sentence.line
            sentences.append(sentence)
            turns.append(turn)

    postings: dict[str, list[int]] = defaultdict(list)
    spoken: dict[str, list[int]] = defaultdict(list)
    asking: list[int] = []

    for number, sentence in enumerate(sentences):
        if sentence.asks:
            asking.append(number)

        for word in sentence.speaker.split():
            spoken[word].append(number)

        for term in sentence.terms:
            postings[term].append(number)

    return ContextIndex(
        sentences=tuple(sentences),
        turns=np.array(turns, dtype=np.int64),
        postings=_arrays(postings),
        spoken=_arrays(spoken),
        asking=np.array(asking, dtype=np.int64),
    )


def rank(question: ParsedQuestion, context: ContextIndex, depth: int) -> Ranking:
    """The `depth` sentences most relevant to the question."""
    named = question.names & context.spoken.keys()
    weights = _weights(question, context, named)
    total = sum(weights.values())
    if not context.sentences or total == 0:
        return Ranking((), (), (), 0.0, 0.0, weights)

    sentence, turn, stem_counts = _overlap(weights, context)
    speaking = _speaking(named, context)
    same_turn = np.diff(context.turns) == 0
    evidence = np.column_stack(
        [
            sentence / total,
            turn[context.turns] / total,
            np.append(0.0, turn[:-1])[context.turns] / total,
            np.append(turn[1:], 0.0)[context.turns] / total,
            _pairs(question, context),
            _flags(speaking, context),
            _flags(context.asking, context),
            _date(question, context),
            np.append(0.0, sentence[:-1] * same_turn) / total,
            np.append(sentence[1:] * same_turn, 0.0) / total,
        ]
    )
    scores = evidence @ IMPORTANCE
    scores[np.sum(evidence[:, :4], axis=1) <= 0] = -np.inf
    best = np.argsort(-scores, kind="stable")[:depth]
    best = best[np.isfinite(scores[best])]
    share = stem_counts / len(weights)
    coverage = coverage_named = float(np.max(share))
    if named:
        coverage_named = float(np.max(share[context.turns[speaking]]))

    return Ranking(
        best=tuple(best.tolist()),
        scores=tuple(scores[best].tolist()),
        evidence=tuple(map(tuple, evidence[best].tolist())),
        coverage=coverage,
        coverage_named=coverage_named,
        weights=weights,
    )


def _flags(places: Places, context: ContextIndex) -> Scores:
    """1 for the sentences at `places`, 0 for the others."""
    flags = np.zeros(len(context.sentences))
    flags[places] = 1
    return flags


def _date(question: ParsedQuestion, context: ContextIndex) -> Scores:
    """1 for sentences said at a time that the question names, 0.5 in the two weeks after a day."""
    nearness = np.zeros(len(context.sentences))
    for text in question.dates:
        for number, sentence in enumerate(context.sentences):
            if sentence.time is not None:
                nearness[number] = max(nearness[number], _nearness(text, sentence.time.date()))

    return nearness


@lru_cache(maxsize=1 << 14)
def _nearness(text: str, said_on: date) -> float:
    if text in (
        day_text(said_on),
        month_text(said_on.year, said_on.month),
        str(said_on.year),
        MONTHS[said_on.month - 1],
    ):
        return 1.0

    for days in range(1, 15):
        if said_on.toordinal() > days and text == day_text(said_on - timedelta(days=days)):
            return 0.5

    return 0.0


def _weights(
    question: ParsedQuestion, context: ContextIndex, named: Iterable[str]
) -> dict[str, float]:
    """The idf of the question's stems without names of speakers, which are weighed separately."""
    left_out = set(map(stem, named))
    return {term: context.idf(term) for term in question.terms if term not in left_out}


def _speaking(named: Iterable[str], context: ContextIndex) -> Places:
    """Numbers of the sentences that any of the named people says."""
    parts = [context.spoken[name] for name in sorted(named)]
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)


def _pairs(question: ParsedQuestion, context: ContextIndex) -> Scores:
    """How many of the question's pairs of neighbouring stems each sentence contains."""
    counts = np.zeros(len(context.sentences))
    for first, second in question.pairs:
        if first in context.postings and second in context.postings:
            counts[np.intersect1d(context.postings[first], context.postings[second])] += 1

    return counts


def _overlap(weights: Mapping[str, float], context: ContextIndex) -> tuple[Scores, Scores, Scores]:
    """Weight of the question's stems per sentence and per turn, and their number per turn."""
    sentence = np.zeros(len(context.sentences))
    turn = np.zeros(int(context.turns[-1]) + 1)
    stem_counts = np.zeros_like(turn)

    for term, weight in weights.items():
        places = context.postings.get(term)
        if places is not None:
            sentence[places] += weight
            turns = np.unique(context.turns[places])
            turn[turns] += weight
            stem_counts[turns] += 1

    return sentence, turn, stem_counts


def _arrays(lists: Mapping[str, list[int]]) -> dict[str, Places]:
    return {key: np.array(places, dtype=np.int64) for key, places in lists.items()}
