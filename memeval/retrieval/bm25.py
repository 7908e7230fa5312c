"""BM25 as rank-bm25 defines it, answered from an inverted index.

rank-bm25 counts the terms and computes the idf. (No faster package reproduces its floor for terms
in more than half the documents.) Its own scoring visits every document for every query term and
keeps a dictionary per document. Here the index stores, for each term, the documents that contain it
and its share of their scores. These are computed with the same operations in the same order, so
scores and ranks are those of `BM25Okapi.get_scores`, and a query adds up a few short arrays.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from memeval.text.words import search_terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tokens = Literal["alnum", "space"]
"""Tokenisation of texts into terms. `alnum` takes the runs of letters and digits of the lower-cased
text, or in scripts without spaces the pairs of neighbouring characters (`memeval.text.words`);
`space` cuts at single spaces and keeps case and punctuation, as LongMemEval's protocol does.
"""
Ties = Literal["position", "reversed"]
"""The order of two documents with equal scores. `position`: the earlier one. `reversed`: the one
that numpy's default sort leaves last, as in LongMemEval's code. That sort is not stable: equal
scores may be in another order on another kind of processor.
"""
_BLOCK = 2**20
"""Numbers that are computed at once."""


def words(text: str) -> list[str]:
    """The parts between single spaces, in order; an empty string between two of them."""
    return text.split(" ")


class _Postings:
    """Replaces rank-bm25's list of dictionaries with the counts of each term in a document."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """The terms, numbered by their first occurrence."""
        self.terms = array("i")
        """The number of each term of each document, one document after the other."""
        self.frequencies = array("i")
        """The count of each of these terms in its document."""
        self.sizes = array("i")
        """The number of different terms in each document."""

    def append(self, frequencies: Mapping[str, int]) -> None:
        """Adds the next document."""
        numbers = self.numbers
        for term in frequencies:
            numbers.setdefault(term, len(numbers))

        self.terms.extend(map(numbers.__getitem__, frequencies))
        self.frequencies.extend(frequencies.values())
        self.sizes.append(len(frequencies))


def _best_first(scores: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Positions of the `most` highest scores, best first; of equal ones, the first comes first."""
    if most >= scores.size:
        return np.argsort(-scores, kind="stable")

    # Sorting a million scores takes longer than everything else together.
    least = np.partition(scores, scores.size - most)[scores.size - most]
    above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    best = above[np.argsort(-scores[above], kind="stable")]
    return np.concatenate([best, equal])[:most]


@cache
def _okapi() -> Any:
    """BM25Okapi that keeps the counts of its documents as postings."""
    from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]

    class Okapi(BM25Okapi):  # type: ignore[misc]
        @property
        def doc_freqs(self) -> _Postings:
            return self._postings

        @doc_freqs.setter
        def doc_freqs(self, _: list[dict[str, int]]) -> None:
            # rank-bm25 assigns an empty list, and then appends to it.
            self._postings = _Postings()

    return Okapi


class Bm25Index:
    """BM25Okapi (k1=1.5, b=0.75, epsilon=0.25) over texts; positions are those of `texts`."""

    def __init__(self, texts: Sequence[str], tokens: Tokens = "alnum") -> None:
        self._cut = search_terms if tokens == "alnum" else words
        self.size = len(texts)
        self._numbers: Mapping[str, int] = {}
        # BM25Okapi divides by the number of terms.
        if any(map(self._cut, texts)):
            self._fill(map(self._cut, texts))

    def _fill(self, corpus: Iterable[list[str]]) -> None:
        model = _okapi()(corpus)
        postings: _Postings = model.doc_freqs
        length = model.k1 * (1 - model.b + model.b * np.array(model.doc_len) / model.avgdl)
        idf = np.fromiter(map(model.idf.__getitem__, postings.numbers), float)
        self._numbers = postings.numbers

        # A stable sort keeps the documents of each term in their order.
        terms = np.frombuffer(postings.terms, dtype=np.intc)
        frequencies = np.frombuffer(postings.frequencies, dtype=np.intc)
        order = np.argsort(terms, kind="stable")
        self._starts = [0, *np.cumsum(np.bincount(terms)).tolist()]
        self._positions = np.repeat(np.arange(self.size, dtype=np.intc), postings.sizes)[order]
        self._weights = np.empty(order.size)

        # The operations are rank-bm25's, in its order: another order would change the last digits,
        # and with them the order of near ties. In blocks, as there may be millions of numbers.
        for start in range(0, order.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            frequency = frequencies[order[block]]
            weights = frequency * (model.k1 + 1)
            weights /= frequency + length[self._positions[block]]
            weights *= idf[terms[order[block]]]
            self._weights[block] = weights

    def scores(self, query: str) -> NDArray[np.float64]:
        """The score of each document; 0 if no term of the query occurs."""
        total = np.zeros(self.size)
        for term in self._cut(query):
            number = self._numbers.get(term)
            if number is not None:
                held = slice(self._starts[number], self._starts[number + 1])
                total[self._positions[held]] += self._weights[held]

        return total

    def ranking(
        self,
        query: str,
        ties: Ties = "position",
        scored: int | None = None,
        most: int | None = None,
    ) -> tuple[list[int], list[float]]:
        """The positions of the best `most` documents, or of all, with ties as requested; and the
        scores of the first `scored` ones, or of all.
        """
        scores = self.scores(query)
        if ties == "position":
            order = _best_first(scores, most or self.size)
        else:
            order = np.argsort(scores)[::-1][:most]

        return order.tolist(), scores[order[:scored]].tolist()

    def save(self, folder: Path) -> None:
        """Writes nothing: the index is quickly rebuilt from the texts."""

    def close(self) -> None:
        """Does nothing: there are no resources to release."""
