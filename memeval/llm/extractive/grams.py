"""Overlap in text without spaces: pairs of characters, and words in Latin script."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise

BEST_UNITS = 5
"""Number of best sentences whose words count for a choice."""

_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_RUN = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+|[a-z0-9]+(?:[._:/-][a-z0-9]+)*"
)
_END = re.compile(r"(?<=[。！？!?；;])|\n")


def has_unspaced(text: str) -> bool:
    """Whether text contains Chinese or Japanese characters."""
    return bool(_UNSPACED.search(text))


@lru_cache(maxsize=1 << 14)
def grams(text: str) -> frozenset[str]:
    """Pairs of neighbouring Chinese characters (or a lone one), and lower-cased Latin words."""
    parts: set[str] = set()
    for run in _RUN.findall(text.lower()):
        if len(run) == 1 or not _UNSPACED.match(run):
            parts.add(run)
        else:
            parts.update(map("".join, pairwise(run)))

    return frozenset(parts)


def gram_scores(question: str, choices: Sequence[str], context: tuple[str, ...]) -> list[float]:
    """Per choice, the idf-weighted share of its grams in sentences near the question.

    If there is no such sentence, the share of its grams that occur in the question.
    """
    sentences, frequency = _read(context)
    asked = grams(question)

    def weight(parts: frozenset[str]) -> float:
        return sum(
            math.log(1 + (len(sentences) - frequency[gram] + 0.5) / (frequency[gram] + 0.5))
            # Sorted, because a sum of floats depends on its order, and the order of a set changes
            # with each process.
            for gram in sorted(parts)
        )

    near = sorted(
        ((weight(asked & sentence), position) for position, sentence in enumerate(sentences)),
        key=lambda scored: (-scored[0], scored[1]),
    )
    best = [(score, sentences[position]) for score, position in near[:BEST_UNITS] if score > 0]
    if not best:
        return [len(grams(choice) & asked) / (len(grams(choice)) or 1) for choice in choices]

    scores = []
    for choice in choices:
        wanted = grams(choice) - asked or grams(choice)
        total = weight(wanted)
        shares = [score / best[0][0] * weight(wanted & sentence) for score, sentence in best]
        scores.append(max(shares) / (total or 1))

    return scores


@lru_cache(maxsize=16)
def _read(context: tuple[str, ...]) -> tuple[list[frozenset[str]], Counter[str]]:
    """The grams of each sentence, and the number of sentences with each gram; cached by context."""
    sentences: list[frozenset[str]] = []
    for chunk in context:
        sentences += map(grams, filter(str.strip, _END.split(chunk)))

    return sentences, Counter(chain.from_iterable(sentences))
