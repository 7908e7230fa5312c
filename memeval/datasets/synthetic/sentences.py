"""The sentences and the values of planted facts."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from memeval.datasets.synthetic import words

ASKING = {words.PERSON: "Who", words.PLACE: "Where"}


def question_about(owner: str, attribute: str, kind: str) -> str:
    """The question for an attribute."""
    return f"{ASKING.get(kind, 'What')} is {owner}'s {attribute}?"


def copula(kind: str) -> str:
    return "is in" if kind == words.PLACE else "is"


def add_opening(rng: Random, sentence: str) -> str:
    """A sentence behind one of the openings."""
    opening = words.OPENINGS[int(rng.random() * len(words.OPENINGS))]
    return opening + sentence if opening else sentence[0].upper() + sentence[1:]


def draw_value(rng: Random, kind: str) -> str:
    """A value of a kind."""
    if kind == words.NUMBER:
        return str(1000 + int(rng.random() * 9000))
    if kind == words.PLACE:
        return _pick(rng, words.PLACE_STARTS) + _pick(rng, words.PLACE_ENDS)

    first, second = (
        (words.FIRST_NAMES, words.LAST_NAMES)
        if kind == words.PERSON
        else (words.ADJECTIVES, words.NOUNS)
    )
    return f"{_pick(rng, first)} {_pick(rng, second)}"


def _pick(rng: Random, values: Sequence[str]) -> str:
    return values[int(rng.random() * len(values))]
