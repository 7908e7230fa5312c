"""BM25 as rank-bm25 defines it, answered from an inverted index.

rank-bm25 counts the terms and computes the idf. (No faster package reproduces its floor for terms
in more than half the documents.) Its own scoring visits every document for every query term and
keeps a dictionary per document. Here the index stores, for each term, the documents that contain it
and how often. Scores are computed with the same operations in the same order, so they and the ranks
are those of `BM25Okapi.get_scores`, and a query adds up a few short arrays.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from memeval.text.words import search_terms

Tokens = Literal["alnum", "space"]
"""Tokenisation of texts into terms. `alnum` takes the runs of letters and digits of the lower-cased
text, or in scripts without spaces the pairs of neighbouring characters (`memeval.text.words`);
`space` cuts at single spaces and keeps case and punctuation, as LongMemEval's protocol does.
"""
_Postings = tuple[NDArray[np.uint16] | slice, NDArray[np.unsignedinteger]]
"""The documents of a block with a term, or all of them, and its occurrences in each."""
BLOCK = 1 << 16
"""Number of documents in a block: a position in it takes two bytes."""
Ties = Literal["position", "reversed"]
"""The order of two documents with equal scores. `position`: the earlier one. `reversed`: the one
that numpy's default sort leaves last, as in LongMemEval's code. That sort is not stable: equal
scores may be in another order on another kind of processor.
"""


def words(text: str) -> list[str]:
    """The parts between single spaces, in order; an empty string between two of them."""
    return text.split(" ")


class _Block:
    """Replaces rank-bm25's list of dictionaries with the documents of each term. Positions of
    documents count from the first one of the block.
    """

    def __init__(self) -> None:
        self.size = 0
        """The number of documents."""
        self.counted: dict[str, array[int]] = defaultdict(partial(array, "H"))
        """The document of each occurrence, in order, for terms that no query has contained yet."""
        self.ready: dict[str, _Postings] = {}
        """The postings of the other terms."""

    def append(self, frequencies: Mapping[str, int]) -> None:
        """Adds the next document."""
        counted, document = self.counted, self.size
        for term, count in frequencies.items():
            counted[term].extend((document,) * count)

        self.size += 1

    def pack(self) -> None:
        """For common terms, keeps a count per document: smaller than a list of all occurrences."""
        for term, documents in list(self.counted.items()):
            if len(documents) > self.size / 2:
                frequency = np.bincount(documents, minlength=self.size)
                self.ready[term] = slice(None), _small(frequency)
                del self.counted[term]

    def postings(self, term: str) -> _Postings | None:
        """The postings of a term; None if it never occurs."""
        documents = self.counted.get(term)
        if documents is not None:
            positions, frequency = np.unique(documents, return_counts=True)
            # In this order: another thread may search meanwhile.
            self.ready[term] = positions, _small(frequency)
            self.counted.pop(term, None)

        return self.ready.get(term)


def _small(counts: NDArray[np.intp]) -> NDArray[np.unsignedinteger]:
    """The counts in the smallest type that holds them, mostly of one byte."""
    return counts.astype(np.min_scalar_type(counts.max()))


def _best(scores: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Positions of the `most` highest scores, ascending; of equal ones, the first are taken."""
    if most >= scores.size:
        return np.arange(scores.size)

    # Sorting a million scores takes longer than everything else together.
    least = np.partition(scores, scores.size - most)[scores.size - most]
    above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.sort(np.concatenate([above, equal[: most - above.size]]))


@cache
def _okapi() -> Any:
    """BM25Okapi that keeps the counts of its documents in blocks."""
    from rank_bm25 import BM25Okapi  # type: ignore[import-untyped]

    class Okapi(BM25Okapi):  # type: ignore[misc]
        @property
        def doc_freqs(self) -> _Block:
            """The block that gets the next document."""
            if self.blocks[-1].size == BLOCK:
                self.blocks[-1].pack()
                self.blocks.append(_Block())

            return self.blocks[-1]

        @doc_freqs.setter
        def doc_freqs(self, _: list[dict[str, int]]) -> None:
            # rank-bm25 assigns an empty list, and then appends to it.
            self.blocks = [_Block()]

    return Okapi


class Bm25Index:
    """BM25Okapi (k1=1.5, b=0.75, epsilon=0.25) over texts; positions are those of `texts`."""

    def __init__(self, texts: Sequence[str], tokens: Tokens = "alnum") -> None:
        self._cut = search_terms if tokens == "alnum" else words
        self.size = len(texts)
        self._blocks: list[_Block] = []
        # BM25Okapi divides by the number of terms.
        if any(map(self._cut, texts)):
            model = _okapi()(map(self._cut, texts))
            self._blocks, self._idf, self._k1 = model.blocks, model.idf, model.k1
            sizes = np.array(model.doc_len)
            self._lengths = model.k1 * (1 - model.b + model.b * sizes / model.avgdl)

    def scores(self, query: str) -> NDArray[np.float64]:
        """The score of each document; 0 if no term of the query occurs."""
        return np.concatenate(list(self._scores_by_block(query)))

    def _scores_by_block(self, query: str) -> Iterator[NDArray[np.float64]]:
        if not self._blocks:
            yield np.zeros(self.size)

        terms = self._cut(query)
        for number, block in enumerate(self._blocks):
            scores = np.zeros(block.size)
            lengths = self._lengths[number * BLOCK : (number + 1) * BLOCK]
            for term in terms:
                if postings := block.ready.get(term) or block.postings(term):
                    positions, frequency = postings
                    # The operations are rank-bm25's, in its order: another order would change the
                    # last digits, and with them the order of near ties.
                    weights = frequency * (self._k1 + 1)
                    weights /= frequency + lengths[positions]
                    weights *= self._idf[term]
                    scores[positions] += weights

            yield scores

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
        if ties == "position":
            positions, scores = self._candidates(query, most or self.size)
            order = np.argsort(-scores, kind="stable")[:most]
        else:
            scores = self.scores(query)
            positions = np.arange(self.size)
            order = np.argsort(scores)[::-1][:most]

        return positions[order].tolist(), scores[order[:scored]].tolist()

    def _candidates(self, query: str, most: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The documents that may be among the best `most`, ascending, and their scores: the best
        of each block, so that nothing as large as the index is sorted or copied.
        """
        positions: list[NDArray[np.intp]] = []
        best_scores: list[NDArray[np.float64]] = []
        for number, scores in enumerate(self._scores_by_block(query)):
            best = _best(scores, most)
            positions.append(best + number * BLOCK)
            best_scores.append(scores[best])

        return np.concatenate(positions), np.concatenate(best_scores)

    def save(self, folder: Path) -> None:
        """Writes nothing: the index is quickly rebuilt from the texts."""

    def close(self) -> None:
        """Does nothing: there are no resources to release."""
