"""LoCoMo's official answer score (Maharana et al., ACL 2024, task_eval/evaluation.py)."""

from __future__ import annotations

import re
import string
from collections import Counter
from functools import cache, lru_cache

from memeval.metrics.nltk_parts import part
from memeval.metrics.refusal import officially_refuses

ARTICLES = re.compile(r"\b(a|an|the|and)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
MULTI_HOP, TEMPORAL, OPEN_DOMAIN, SINGLE_HOP, ADVERSARIAL = 1, 2, 3, 4, 5


def normalise(text: str) -> str:
    """Lower case without ASCII punctuation and the words a, an, the, and; runs of white space become one space."""
    bare = text.lower().translate(PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", bare).split())


@cache
def _stemmer() -> object:
    return part("nltk.stem.porter").PorterStemmer()


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The word's Porter stem, in the default mode of NLTK's stemmer."""
    stemmed: str = _stemmer().stem(word)  # type: ignore[attr-defined]
    return stemmed


def stems(text: str) -> list[str]:
    """Porter stems of the normalised text's words."""
    return [stem(word) for word in normalise(text).split()]


def token_f1(prediction: str, gold: str) -> float:
    """Token-overlap F1 of LoCoMo's official scorer, in [0, 1].

    Both texts are normalised (see `normalise`) and Porter-stemmed; overlap is counted with multiplicity.
    Returns 0.0 where nothing overlaps, empty texts included.
    """
    predicted, expected = Counter(stems(prediction)), Counter(stems(gold))
    common = (predicted & expected).total()
    if common == 0:
        return 0.0
    precision, recall = common / predicted.total(), common / expected.total()
    return 2 * precision * recall / (precision + recall)


def parts_f1(prediction: str, gold: str) -> float:
    """Mean over the gold's comma parts of the best `token_f1` among the prediction's comma parts: the rule of category 1."""
    predictions, golds = prediction.split(","), gold.split(",")
    return sum(max(token_f1(predicted, expected) for predicted in predictions) for expected in golds) / len(golds)


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
