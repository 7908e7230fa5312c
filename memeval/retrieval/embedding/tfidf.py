"""The offline embedder: tf-idf over the character n-grams of words, hashed to a fixed width.

It needs neither weights nor a network. On the turns of LoCoMo it finds more evidence than BM25 or a
small neural model does (see `perf/embedding_width.py`).
"""

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from memeval.config.schema import EmbedderConfig
from memeval.llm.metering import current_ledger
from memeval.llm.network import Network
from memeval.retrieval.embedding.contract import Embedder, Vectors
from memeval.text.words import is_latin, search_terms

Hashes = NDArray[np.uint32]

# These lengths found the most: 0.485 of the evidence within 5 turns, before hashing, on LoCoMo's
# 1,535 questions. BM25 found 0.435, whole words 0.428, and MiniLM 0.367.
SHORTEST, LONGEST = 3, 5
"""Characters of an n-gram."""
DEFAULT_WIDTH = 4096
"""Numbers per vector: chosen by `perf/embedding_width.py`."""

_SPREAD = 0x9E3779B1
"""Knuth's multiplicative constant: spreads CRC-32 values, which are linear in their input, over the
columns.
"""


class CharTfidfEmbedder(Embedder):
    """Character n-grams within words (scikit-learn's `char_wb`), sublinear tf, smoothed idf, signed
    feature hashing, rows of length 1.

    `fitted(texts)` learns the document frequencies of one case. N-grams that the case does not have
    are then left out, because they can match nothing. Unfitted, every n-gram counts alike. Equal
    texts give equal vectors in every process.
    Source of the hashing trick: Weinberger et al., ICML 2009.
    """

    def __init__(self, width: int = DEFAULT_WIDTH) -> None:
        if width < 1:
            raise ValueError(f"need width >= 1, got {width}")

        self.width = width
        self._hashes: Hashes | None = None
        self._idf: NDArray[np.float32] | None = None
        self.name = self._spell()

    @classmethod
    def from_settings(cls, settings: EmbedderConfig, network: Network) -> Self:
        return cls(width=settings.width or DEFAULT_WIDTH)

    def fitted(self, texts: Sequence[str]) -> Self:
        """A new embedder with the document frequencies of `texts`.

        idf = ln((1 + n) / (1 + df)) + 1
        """
        per_text = [np.unique(self._ngrams(text)) for text in texts]
        hashes, frequency = np.unique(_join(per_text), return_counts=True)
        idf = np.log((1 + len(texts)) / (1 + frequency)) + 1

        other = type(self)(self.width)
        other._hashes, other._idf = hashes, idf.astype(np.float32)
        other.name = other._spell()
        return other

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """A single text is embedded immediately, several texts in a thread."""
        if len(texts) <= 1:
            return self._rows(texts)

        return await current_ledger().own_work.in_worker(self._rows, texts)

    def _rows(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.width), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            self._fill(row, text)

        return rows

    def _spell(self) -> str:
        base = f"char-tfidf/{SHORTEST}-{LONGEST}/{self.width}"
        if self._hashes is None or self._idf is None:
            return base

        learnt = hashlib.sha256(self._hashes.tobytes() + self._idf.tobytes()).hexdigest()
        return f"{base}/idf-{learnt[:16]}"

    def _ngrams(self, text: str) -> Hashes:
        # A Chinese sentence would be one word, whose n-grams rarely recur.
        words = text.lower().split() if is_latin(text) else search_terms(text)
        return _join(map(_word_ngrams, words))

    def _fill(self, row: NDArray[np.float32], text: str) -> None:
        hashes, counts = np.unique(self._ngrams(text), return_counts=True)
        weights = 1 + np.log(counts)
        if self._hashes is not None and self._idf is not None:
            hashes, weights = _weigh(hashes, weights, self._hashes, self._idf)

        spread = hashes * np.uint32(_SPREAD)
        # With random signs, n-grams that share a column cancel each other on average.
        signs = np.where(spread >> np.uint32(31), -1.0, 1.0)
        summed = np.bincount(
            spread % np.uint32(self.width), weights=weights * signs, minlength=self.width
        )
        length = np.linalg.norm(summed)
        if length > 0:
            row[:] = summed / length


def _weigh(
    hashes: Hashes, weights: NDArray[np.float64], known: Hashes, idf: NDArray[np.float32]
) -> tuple[Hashes, NDArray[np.float64]]:
    """Those among `hashes` that are in `known`, which is sorted, and their weights times idf."""
    if known.size == 0:
        return hashes[:0], weights[:0]

    positions = np.minimum(np.searchsorted(known, hashes), known.size - 1)
    is_known = known[positions] == hashes
    return hashes[is_known], weights[is_known] * idf[positions[is_known]]


def _join(parts: Iterable[Hashes]) -> Hashes:
    return np.concatenate([np.empty(0, dtype=np.uint32), *parts])


@lru_cache(maxsize=1 << 16)
def _word_ngrams(word: str) -> Hashes:
    """CRC-32 of each n-gram of the word between two blanks.

    A word shorter than n counts once, as in `char_wb`.
    """
    padded = f" {word} "
    grams: list[str] = []
    for size in range(SHORTEST, LONGEST + 1):
        grams += [padded[start : start + size] for start in range(max(1, len(padded) - size + 1))]
        if len(padded) <= size:
            break

    return np.array(
        # Not `hash`, which differs between processes. Strings may have halves of surrogate pairs.
        [zlib.crc32(gram.encode("utf-8", "surrogatepass")) for gram in grams],
        dtype=np.uint32,
    )
