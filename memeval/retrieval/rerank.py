"""Reordering of a few candidates by what a first ranking overlooked, offline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from memeval.retrieval.bm25 import terms

DENSE_WEIGHT = 0.5


class LexicalReranker:
    """Mixes the similarity of a first ranking with how much of the question a text holds.

    score = 0.5 * similarity, cut to [0, 1] + 0.5 * coverage
    coverage = sum of idf over the question's distinct terms that the text holds / the same sum over all its terms that the corpus holds
    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5)), n of the corpus' N texts hold t

    Rare words of the question (names, places) that an embedding blurs bring a text up; a word in every text moves nothing. Coverage is 0
    where no term of the question is in the corpus: the first ranking then stands.
    """

    def __init__(self, corpus: Sequence[str]) -> None:
        self._terms = [frozenset(terms(text)) for text in corpus]
        counts = Counter(term for held in self._terms for term in held)
        size = len(self._terms)
        self._idf = {term: math.log(1 + (size - count + 0.5) / (count + 0.5)) for term, count in counts.items()}

    def rerank(self, query: str, candidates: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        """Positions in the corpus with their new scores, best first; ties keep the order of `candidates`."""
        asked = {term: self._idf[term] for term in dict.fromkeys(terms(query)) if term in self._idf}
        whole = sum(asked.values())

        def score(position: int, similarity: float) -> float:
            held = sum(idf for term, idf in asked.items() if term in self._terms[position])
            coverage = held / whole if whole else 0.0
            return DENSE_WEIGHT * min(max(similarity, 0.0), 1.0) + (1 - DENSE_WEIGHT) * coverage

        scored = [(position, score(position, similarity)) for position, similarity in candidates]
        return sorted(scored, key=lambda pair: -pair[1])
