"""LoCoMo's official answer score (Maharana et al., ACL 2024, task_eval/evaluation.py)."""

from __future__ import annotations

import re
import string
from collections import Counter

from memeval.metrics.porter import stem
from memeval.metrics.refusal import officially_refuses

ARTICLES = re.compile(r"\b(a|an|the|and)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
MULTI_HOP, TEMPORAL, OPEN_DOMAIN, SINGLE_HOP, ADVERSARIAL = 1, 2, 3, 4, 5


def normalise(text: str) -> str:
    """Lower case without ASCII punctuation and the words a, an, the, and; runs of white space become one space."""
    bare = text.lower().translate(PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", bare).split())


def stems(text: str) -> list[str]:
    """Porter stems of the normalised text's words."""
    return [stem(word) for word in normalise(text).split()]


def token_f1(prediction: str, gold: str) -> float:
    """Token-overlap F1 of LoCoMo's official scorer, in [0, 1].

    Both texts are normalised (see `normalise`) and Porter-stemmed; overlap is counted with multiplicity.
    Returns 0.0 where nothing overlaps, empty texts included.
    """
    return f1(Counter(stems(prediction)), Counter(stems(gold)))


def f1(predicted: Counter[str], expected: Counter[str]) -> float:
    """F1 of two counts of tokens, in [0, 1]; 0.0 where nothing overlaps.

    By integers, `2 · common / (predicted + expected)`: by way of precision and recall, exact halves
    fall below 0.5 by rounding, and an answer below a threshold.
    """
    common = (predicted & expected).total()
    return 2 * common / (predicted.total() + expected.total()) if common else 0.0


def parts_f1(prediction: str, gold: str) -> float:
    """Mean over the gold's comma parts of the best `token_f1` among the prediction's comma parts: the rule of category 1."""
    # SystemContext that recur are compared once: a reply of nothing but commas has 200,000 of them.
    predictions = [Counter(stems(part)) for part in dict.fromkeys(prediction.split(","))]
    golds = [Counter(stems(part)) for part in gold.split(",")]

    best = [max(f1(predicted, expected) for predicted in predictions) for expected in golds]
    return sum(best) / len(best)


def locomo_f1(prediction: str, gold: str, category: int) -> float:
    """The official score of an answer in category 1-5, in [0, 1].

    Category 1 by `parts_f1`, 2 and 4 by `token_f1`, 3 by `token_f1` against the gold's part before `;`, 5 is 1 where the answer refuses
    in one of two phrases. Raises ValueError on any other category.
    """
    if category == ADVERSARIAL:
        return float(officially_refuses(prediction))
    if category == MULTI_HOP:
        return parts_f1(prediction, gold)
    if category == OPEN_DOMAIN:
        return token_f1(prediction, gold.partition(";")[0])
    if category in (TEMPORAL, SINGLE_HOP):
        return token_f1(prediction, gold)
    raise ValueError(f"LoCoMo has no category {category!r}")


def exact_match(prediction: str, gold: str) -> float:
    """1.0 where both texts are equal after `normalise` (no stemming); texts that it leaves empty must be equal as they stand."""
    predicted, expected = normalise(prediction), normalise(gold)
    if not predicted and not expected:
        return float(prediction.strip().lower() == gold.strip().lower())
    return float(predicted == expected)
