"""The candidate spans of a sentence, and their features that don't depend on the question.

A candidate starts and ends with a content word (or starts with a preposition), has at most
`LONGEST` tokens, and stays within a sentence.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from memeval.llm.extractive.sentences import Sentence
from memeval.llm.extractive.words import (
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    EVALUATIVE,
    NUMBERS,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    STOP_WORDS,
    TEMPORAL,
    VAGUE,
)

Places = NDArray[np.int64]
Matrix = NDArray[np.float32]

LONGEST = 14
"""Maximum number of tokens in a candidate."""
LONGEST_SENTENCE = 60
"""Number of a sentence's tokens that are examined; longer texts are not real sentences."""
QUOTES = frozenset("\"“”'‘’*")
REASONS = frozenset("because since so to for as".split())
PLACES = frozenset("in at to from near on into around".split())
MEANS = frozenset("by with through via using".split())
TIME_UNITS = frozenset(
    "second minute hour day week weekend month year decade morning time times".split()
)
SINGULARS = {unit + "s": unit for unit in TIME_UNITS}

STATIC = tuple(
    """
        log_length long first
        after_punctuation after_preposition after_determiner after_auxiliary after_pronoun
        after_conjunction starts_preposition starts_ing starts_ed
        before_punctuation before_preposition before_conjunction before_auxiliary before_content
        capital quoted number stop_share comma and pronoun adverb_end asks caption
        place reason means time_unit evaluative all_evaluative vague temporal single
    """.split()
)
"""Names of the columns of `Spans.features`."""


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """The candidates of one sentence."""

    starts: Places
    ends: Places
    """First and last token of each candidate, both included."""
    features: Matrix
    """One row per candidate, one column per name of `STATIC`."""


@lru_cache(maxsize=1 << 12)
def spans(sentence: Sentence) -> Spans:
    kinds = list(map(_token_kind, sentence.words[:LONGEST_SENTENCE]))
    pairs: list[tuple[int, int]] = []
    for start, kind in enumerate(kinds):
        if kind in ("content", "preposition"):
            ends = range(start, min(len(kinds), start + LONGEST))
            pairs += [(start, end) for end in ends if kinds[end] == "content"]

    rows = [_row(sentence, kinds, start, end) for start, end in pairs]
    places = np.array(pairs, dtype=np.int64).reshape(-1, 2)

    return Spans(
        places[:, 0], places[:, 1], np.array(rows, dtype=np.float32).reshape(-1, len(STATIC))
    )


_CLASSES = (
    ("preposition", PREPOSITIONS),
    ("determiner", DETERMINERS),
    ("auxiliary", AUXILIARIES),
    ("pronoun", PRONOUNS),
    ("conjunction", CONJUNCTIONS | QUESTION_WORDS),
    ("filler", STOP_WORDS),
)


def _token_kind(word: str) -> str:
    if not word[0].isalnum():
        return "punctuation"

    for name, members in _CLASSES:
        if word in members:
            return name

    return "content"


def _row(sentence: Sentence, kinds: list[str], start: int, end: int) -> list[float]:
    """The static features of one candidate, in the order of `STATIC`."""
    words, inside = sentence.words[start : end + 1], kinds[start : end + 1]
    before = kinds[start - 1] if start else "none"
    after = kinds[end + 1] if end + 1 < len(kinds) else "punctuation"
    length = sum(kind != "punctuation" for kind in inside)

    return [
        float(np.log(length)),
        max(0, length - 6) / 6,
        start == 0,
        before == "punctuation",
        before == "preposition",
        before == "determiner",
        before == "auxiliary",
        before == "pronoun",
        before == "conjunction",
        inside[0] == "preposition",
        words[0].endswith("ing") and len(words[0]) > 4,
        words[0].endswith("ed"),
        after == "punctuation",
        after == "preposition",
        after == "conjunction",
        after == "auxiliary",
        after == "content",
        _capital(sentence, start, end),
        _find_quotes(sentence, start, end),
        any(word.isdigit() or NUMBERS.get(word, 0) > 1 for word in words),
        sum(kind != "content" for kind in inside) / len(inside),
        "," in words,
        "and" in words,
        "pronoun" in inside,
        words[-1].endswith("ly"),
        sentence.asks,
        sentence.caption,
        _leads(sentence, start, PLACES),
        _leads(sentence, start, REASONS),
        _leads(sentence, start, MEANS),
        any(SINGULARS.get(word, word) in TIME_UNITS for word in words),
        not EVALUATIVE.isdisjoint(words),
        all(word in EVALUATIVE or word in VAGUE for word in words),
        not VAGUE.isdisjoint(words),
        sum(word in TEMPORAL for word in words) / length,
        length == 1,
    ]


def _capital(sentence: Sentence, start: int, end: int) -> bool:
    """True if a word other than the sentence's first starts with a capital letter."""
    inside = sentence.spans[max(1, start) : end + 1]
    return any(sentence.text[first].isupper() for first, _ in inside)


def _find_quotes(sentence: Sentence, start: int, end: int) -> bool:
    words = sentence.words
    return (
        start > 0
        and end + 1 < len(words)
        and words[start - 1] in QUOTES
        and words[end + 1] in QUOTES
    )


def _leads(sentence: Sentence, start: int, leaders: frozenset[str]) -> bool:
    """True if the candidate starts with one of `leaders`, or right after one."""
    return sentence.words[start] in leaders or (start > 0 and sentence.words[start - 1] in leaders)
