"""Overlap and equality of tokens, as LoCoMo's official scorer counts them.

Source: Maharana et al., ACL 2024, task_eval/evaluation.py.
"""

import re
import string
from collections import Counter

from memeval.metrics.porter import stem
from memeval.text.short_cache import cache_short
from memeval.text.words import is_unspaced, spread

# With "and", as in the official scorer.
ARTICLES = re.compile(r"\b(a|an|the|and)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


@cache_short
def normalise(text: str) -> str:
    """Lower case without ASCII punctuation and the words a, an, the, and.

    Runs of white space become one space. Other scripts need more: see `memeval.text.words.spread`.
    """
    # Deleted, not replaced by a space, as in the official scorer: `self-care` and `self care` share
    # no word.
    bare = spread(text).lower().translate(PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", bare).split())


@cache_short
def stems(text: str) -> tuple[str, ...]:
    """Porter stems of the normalised text's words."""
    return tuple(map(stem, normalise(text).split()))


def token_f1(prediction: str, gold: str) -> float:
    """F1 of the stems of both texts, in [0, 1]; overlap is counted with multiplicity.

    Returns 0.0 if nothing overlaps, empty texts included.
    """
    return f1(Counter(stems(prediction)), Counter(stems(gold)))


def f1(predicted: Counter[str], expected: Counter[str]) -> float:
    """F1 of two counts of tokens, in [0, 1]; 0.0 if nothing overlaps.

    Computed from integers, as `2 · common / (predicted + expected)`: through precision and recall,
    rounding would put exact halves below 0.5, and so an answer below a threshold.
    """
    common = (predicted & expected).total()
    if common == 0:
        return 0.0

    return 2 * common / (predicted.total() + expected.total())


def exact_match(prediction: str, gold: str) -> float:
    """1.0 if both texts are equal after `normalise`, without stemming.

    If nothing is left of both texts, they must be equal before normalising, except for case.
    """
    predicted, expected = normalise(prediction), normalise(gold)
    if not predicted and not expected:
        return float(prediction.strip().lower() == gold.strip().lower())

    return float(predicted == expected)


def contains(prediction: str, gold: str) -> float:
    """1.0 if the gold occurs in the prediction, both after `normalise`, as whole words.

    `art` is not in `party`. In scripts without spaces, any position counts. If nothing is left of
    the gold, it must occur verbatim, except for case.
    """
    predicted, expected = normalise(prediction), normalise(gold)
    if not expected:
        # Such as `?` or `The`; a blank gold only occurs in a blank prediction.
        answer, bare = prediction.strip().lower(), gold.strip().lower()
        return float(bare in answer if bare else not answer)

    start = predicted.find(expected)
    while start >= 0:
        end = start + len(expected)
        if not _within_word(predicted, start) and not _within_word(predicted, end):
            return 1.0

        start = predicted.find(expected, start + 1)

    return 0.0


def _within_word(text: str, position: int) -> bool:
    """Whether the characters before and after a position belong to one word."""
    around = (text[position - 1 : position], text[position : position + 1])
    is_word = all(char.isalnum() or char == "_" for char in around)
    return is_word and not any(map(is_unspaced, around))
