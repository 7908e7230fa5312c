"""Runs of words: whether a gold answer occurs in a string."""

import re
from collections.abc import Iterable, Sequence

from memeval.text.words import spread

_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The words of a string in lower case, without punctuation; of Chinese, Japanese and Korean,
    the characters.
    """
    return _WORD.findall(spread(text).lower())


def spaced(text: str) -> str:
    """The words of a string with a space around each, so that whole words can be searched for."""
    return f" {' '.join(words_of(text))} "


def runs_of(words: Sequence[str], length: int) -> list[str]:
    """All runs of `length` words, in the form of `spaced`; empty if there are fewer words."""
    starts = range(len(words) - length + 1)
    return [f" {' '.join(words[start : start + length])} " for start in starts]


def gold_runs(gold: Iterable[str], question: str, least: int, most: int = 6) -> list[str]:
    """Runs of words that reveal a gold answer: all of a short answer, parts of a long one. A gold
    of fewer than `least` words proves nothing, because "yes" and "two" are everywhere. Words of the
    question itself reveal nothing.
    """
    asked = spaced(question)
    runs = []
    for answer in gold:
        words = words_of(answer)
        if len(words) >= least:
            runs += runs_of(words, min(len(words), most))

    return [run for run in dict.fromkeys(runs) if run not in asked]
