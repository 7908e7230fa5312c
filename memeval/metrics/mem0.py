"""The two lexical metrics of mem0's evaluation (Chhikara et al., 2025,
evaluation/metrics/utils.py).
"""

from collections import Counter
from math import exp

from memeval.metrics.nltk_words import words as lower_case_words
from memeval.text.short_cache import cache_short
from memeval.text.words import spread

MARKS = str.maketrans(".,!?", "    ")


def mem0_f1(prediction: str, gold: str) -> float:
    """F1 over the *sets* of words, in [0, 1]: lower-cased, `. , ! ?` become spaces; no stemming.
    0.0 for empty texts.
    """
    # Sets and no stemming: unlike the official F1, repeats don't count, and articles do.
    predicted = set(spread(prediction).lower().translate(MARKS).split())
    expected = set(spread(gold).lower().translate(MARKS).split())
    common = len(predicted & expected)
    if common == 0:
        return 0.0

    return 2 * common / (len(predicted) + len(expected))


def bleu1(prediction: str, gold: str) -> float:
    """BLEU-1 with NLTK's smoothing method1, in [0, 1]: clipped unigram precision times the brevity
    penalty.

    p = matches / words of the prediction; penalty exp(1 - r/c) if the prediction (c words) is
    shorter than the gold (r). 0.0 if no word matches.
    """
    predicted, expected = words(spread(prediction)), words(spread(gold))
    matches = (Counter(predicted) & Counter(expected)).total()
    # NLTK returns 0 here before it smooths, so the smoothing never shows in BLEU-1.
    if matches == 0:
        return 0.0

    brevity = 1.0
    if len(predicted) <= len(expected):
        brevity = exp(1 - len(expected) / len(predicted))

    return brevity * matches / len(predicted)


@cache_short
def words(text: str) -> tuple[str, ...]:
    """Tokens of the lower-cased text by NLTK's `word_tokenize`, as in mem0's evaluation."""
    return tuple(lower_case_words(text.lower()))
