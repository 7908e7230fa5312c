"""The offline reranker: similarity, and the question's words that a first ranking overlooked."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Self

from memeval.retrieval.rerank import Candidate, Reranker
from memeval.text.words import search_terms

DENSE_WEIGHT = 0.5


class LexicalReranker(Reranker):
    """Mixes the similarity of a first ranking with the share of the question that a text contains.

    score = 0.5 * similarity, cut to [0, 1] + 0.5 * coverage
    coverage = sum of idf over the question's distinct terms that the text contains
               / the same sum over all its terms that the corpus contains
    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5)), n of the corpus' N texts contain t

    Rare words of the question (names, places) that an embedding blurs raise a text; a word in
    every text changes nothing. Coverage is 0 if no term of the question is in the corpus: the
    first ranking then stays.
    """

    def __init__(self, corpus: Sequence[str] = ()) -> None:
        self._terms = list(map(frozenset, map(search_terms, corpus)))
        counts = Counter(chain.from_iterable(self._terms))
        size = len(self._terms)
        self._idf = {
            term: math.log(1 + (size - count + 0.5) / (count + 0.5))
            for term, count in counts.items()
        }

    def fitted(self, texts: Sequence[str]) -> Self:
        return type(self)(texts)

    async def scores(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        asked = {term: self._idf[term] for term in search_terms(query) if term in self._idf}
        whole = sum(asked.values())

        scores = []
        for candidate in candidates:
            terms_held = self._terms[candidate.position]
            held = sum(idf for term, idf in asked.items() if term in terms_held)
            coverage = held / whole if whole else 0.0
            similarity = min(max(candidate.similarity, 0.0), 1.0)
            scores.append(DENSE_WEIGHT * similarity + (1 - DENSE_WEIGHT) * coverage)

        return scores
