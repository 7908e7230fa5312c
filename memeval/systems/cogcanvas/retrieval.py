"""CogCanvas's index of artifacts, their scores for a query, and how many fit into its context."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memeval.retrieval.bm25 import Bm25Index
from memeval.retrieval.dense import VECTORS_FILE, embed
from memeval.retrieval.embedding.contract import Embedder, Vectors
from memeval.retrieval.vectors import width_error
from memeval.systems.cogcanvas.artifacts import Artifact, write_artifacts
from memeval.systems.cogcanvas.graph import Canvas
from memeval.systems.cogcanvas.settings import CogCanvasSettings
from memeval.systems.indexed import SearchIndex
from memeval.text.words import is_latin, search_terms

Scores = NDArray[np.float64]

DENSE_SHARE = 0.7
"""Weight of the vectors in a score; the rest is BM25's."""
# Both numbers as published. At the default `top_k` of 15 they have no effect, there or here.
TIME_TOP_K = 12
"""Minimum artifacts for a question about time."""
REASON_TOP_K = 15
"""Minimum artifacts for a question about reasons or order."""
HEAD_TOKENS = 5
ITEM_TOKENS = 10
CHARACTERS_PER_TOKEN = 4
"""How the published system estimates the tokens of its context."""
# Whole words. The published code looks for substrings, so "Chicago" counts as "ago".
_TIME_WORDS = re.compile(
    r"\b(?:when|date|day|week|month|year|time|ago|since|recently|last|next)\b", re.IGNORECASE
)
_REASON_WORDS = re.compile(
    r"\b(?:why|because|reason|cause[ds]?|after|before|led|result(?:ed)?|how come)\b", re.IGNORECASE
)


class CanvasIndex(SearchIndex):
    """The artifacts of one conversation with the indexes over them."""

    def __init__(
        self,
        *,
        artifacts: Sequence[Artifact],
        texts: Sequence[str],
        counts: Mapping[str, int],
        vectors: Vectors,
        embedder: Embedder,
        settings: CogCanvasSettings,
    ) -> None:
        """`texts` are the artifacts' search texts, with their vectors and the embedder that was
        fitted on them; `counts` are those of the extraction.
        """
        self.artifacts, self.counts = artifacts, counts
        self.canvas = Canvas(artifacts, vectors, settings)
        self._texts, self._vectors, self._embedder = texts, vectors, embedder
        # As published: punctuation is deleted, so "self-care" is one word, and the rest is cut at
        # spaces.
        self._keywords = Bm25Index(list(map(plain_words, texts)), tokens="space")

    def vectors_by_text(self) -> dict[str, Vectors]:
        return dict(zip(self._texts, self._vectors, strict=True))

    async def scores(self, text: str, *, words: bool, normalised: bool) -> Scores:
        """The score of each artifact: vectors, and BM25 if `words`; `normalised` by the best one.

        Raises `ModelError` if the query's vector is not as wide as those of the artifacts.
        """
        (vector,) = await embed(self._embedder, [text])
        if len(vector) != self._vectors.shape[1]:
            raise width_error("the query's vector", len(vector), self._vectors.shape[1])

        dense: Scores = (self._vectors @ vector).astype(np.float64)
        if normalised:
            dense = shares(dense)

        if not words:
            return dense

        return hybrid(dense, self._keywords.scores(plain_words(text)))

    def save(self, folder: Path) -> None:
        """Writes artifacts, counts and vectors into `folder`."""
        write_artifacts(folder, self.artifacts, self.counts)
        np.save(folder / VECTORS_FILE, self._vectors, allow_pickle=False)


def hybrid(dense: Scores, keyword: Scores) -> Scores:
    """0.7 * dense + 0.3 * BM25, with BM25 divided by its best score for this query."""
    # As published, only BM25 is divided by its best score: the cosine counts unchanged.
    return DENSE_SHARE * dense + (1 - DENSE_SHARE) * shares(keyword)


def shares(scores: Scores) -> Scores:
    """Scores divided by the best one, with those below 0 as 0: the best is 1, unless all are 0."""
    positive = np.maximum(scores, 0.0)
    best = positive.max(initial=0.0)
    return positive / best if best > 0 else positive


def plain_words(text: str) -> str:
    """The text that BM25 indexes: lower case without punctuation, or search terms if not Latin."""
    if not is_latin(text):
        return " ".join(search_terms(text))

    return " ".join(re.sub(r"[^\w\s]", "", text.lower()).split())


def adapted_top_k(question: str, top_k: int) -> int:
    """`top_k`, raised for a question about time, and more for one about reasons or order."""
    # Reasons come first: many questions about reasons also contain a time word.
    if _REASON_WORDS.search(question):
        return max(top_k, REASON_TOP_K)

    if _TIME_WORDS.search(question):
        return max(top_k, TIME_TOP_K)

    return top_k


def within_budget(texts: Iterable[str], budget: int) -> int:
    """How many texts fit: each costs 1/4 of its characters plus 10 tokens, the list itself 5."""
    cost = HEAD_TOKENS
    count = 0
    for text in texts:
        cost += len(text) // CHARACTERS_PER_TOKEN + ITEM_TOKENS
        if cost > budget:
            # As published: a shorter text after it is not tried.
            break

        count += 1

    return count
