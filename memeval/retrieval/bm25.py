"""BM25 as rank-bm25 defines it, answered from a sparse column matrix.

rank-bm25 builds the index and the idf. (No faster package reproduces its floor for terms in more
than half of the documents.) Its own scoring visits every document for every query term. Here each
term's contributions are computed once, when a query first contains the term, with the same
operations in the same order. So scores and ranks are those of `BM25Okapi.get_scores`, and a query
adds up a few short arrays. Most terms of a long history are never asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from memeval.words import search_terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tokens = Literal["alnum", "space"]
"""How texts are cut into terms. `alnum` takes the runs of letters and digits of the lower-cased
text, in scripts without spaces the pairs of neighbouring characters (`memeval.words`);
`space` cuts at single spaces and keeps case and punctuation, as LongMemEval's protocol does.
"""
Ties = Literal["position", "reversed"]
"""Which of two documents of one score comes first. `position`: the earlier one. `reversed`: the one
that numpy's default sort leaves last, as in LongMemEval's code. That sort is not stable: equal
scores may come out in another order on another kind of processor.
"""


def words(text: str) -> list[str]:
    """What is between single spaces, in order; an empty string between two of them."""
    return text.split(" ")


Column = tuple["NDArray[np.intp]", "NDArray[np.float64]"]
"""Positions of the documents that hold a term, and what the term adds to the score of each."""


class Bm25Index:
    """BM25Okapi (k1=1.5, b=0.75, epsilon=0.25) over texts; positions are those of `texts`."""

    def __init__(self, texts: Sequence[str], tokens: Tokens = "alnum") -> None:
        self._terms = search_terms if tokens == "alnum" else words
        corpus = [self._terms(text) for text in texts]
        self.size = len(corpus)
        self._columns: dict[str, Column | None] = {}
        self._counts: list[dict[str, int]] = []
        # BM25Okapi divides by the number of terms.
        if any(corpus):
            self._fill(corpus)

    def _fill(self, corpus: list[list[str]]) -> None:
        from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]

        model = BM25Okapi(corpus)
        self._counts, self._idf, self._k1 = model.doc_freqs, model.idf, model.k1
        self._length = model.k1 * (1 - model.b + model.b * np.array(model.doc_len) / model.avgdl)

    def _column(self, term: str) -> Column | None:
        """The documents that hold a term, and what it adds to their scores; None without any."""
        if term not in self._columns:
            counted = [
                (position, counts[term])
                for position, counts in enumerate(self._counts)
                if term in counts
            ]
            if counted:
                rows, frequency = map(np.array, zip(*counted, strict=True))
                self._columns[term] = self._weigh(term, rows, frequency)
            else:
                self._columns[term] = None

        return self._columns[term]

    def _weigh(self, term: str, rows: NDArray[np.intp], frequency: NDArray[np.intp]) -> Column:
        # Written as rank-bm25 writes it: another order of the operations would change the last
        # digits, and with them the order of near ties.
        return rows, (self._idf.get(term) or 0) * (
            frequency * (self._k1 + 1) / (frequency + self._length[rows])
        )

    def scores(self, query: str) -> NDArray[np.float64]:
        """The score of each document; 0 where no term of the query occurs."""
        total = np.zeros(self.size)
        for term in self._terms(query):
            if column := self._column(term):
                rows, weights = column
                total[rows] += weights

        return total

    def ranking(self, query: str, ties: Ties = "position") -> tuple[list[int], list[float]]:
        """All positions, best first and ties as asked for, and their scores."""
        scores = self.scores(query)
        if ties == "position":
            order = np.argsort(-scores, kind="stable")
        else:
            order = np.argsort(scores)[::-1]

        return order.tolist(), scores[order].tolist()

    def save(self, folder: Path) -> None:
        """Writes nothing: the index is quickly made again from the texts."""

    def close(self) -> None:
        """Holds nothing that must be given back."""
