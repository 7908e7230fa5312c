"""Two rankings of the same texts, by meaning and by words, joined by reciprocal rank fusion."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from memeval.retrieval.bm25 import Bm25Index
from memeval.retrieval.dense import DenseIndex
from memeval.retrieval.embedding.contract import Embedder

RRF_K = 60
"""The constant used by the source and by CogCanvas' protocol."""
CANDIDATES = 200
"""Minimum number of positions taken from each ranking. It is fixed, so that a larger depth adds
results at the end and moves none above.
"""


def reciprocal_rank_fusion(
    rankings: Iterable[Sequence[int]], k: int = RRF_K
) -> list[tuple[int, float]]:
    """Positions with their fused scores, best first; ties in the order of position.

    score(d) = sum over the rankings that contain d of 1 / (k + rank of d), ranks from 1. Source:
    Cormack, Clarke and Büttcher, SIGIR 2009.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, position in enumerate(ranking, start=1):
            scores[position] = scores.get(position, 0.0) + 1 / (k + rank)

    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


class FusedIndex:
    """A dense and a BM25 index over the same chunks; positions refer to the given chunks."""

    def __init__(self, dense: DenseIndex, words: Bm25Index) -> None:
        self._dense = dense
        self._words = words

    @classmethod
    async def open(
        cls,
        embedder: Embedder,
        texts: Sequence[str],
        contents: Sequence[str],
        saved: Path | None = None,
        before: Self | None = None,
    ) -> Self:
        """The index over the chunks: built, or its vectors read from the folder `saved`.

        `texts` are embedded, dates included; `contents` are indexed by their words, as
        `system=bm25` does; `before` is an index over earlier chunks. Raises if the folder is
        damaged.
        """
        earlier = None if before is None else before._dense
        return cls(await DenseIndex.open(embedder, texts, saved, earlier), Bm25Index(contents))

    def save(self, folder: Path) -> None:
        """Writes the vectors into `folder`; the caller keeps the chunks."""
        self._dense.save(folder)

    async def search(self, query: str, depth: int, k: int = RRF_K) -> list[tuple[int, float]]:
        """The best `depth` positions with their fused scores.

        A text without any term of the query is not in the ranking by words.
        """
        places = max(depth, CANDIDATES)
        near = [position for position, _ in await self._dense.search(query, places)]
        order, scores = self._words.ranking(query)
        # Negative scores count: rank-bm25's floor for the idf of common terms may lie below 0.
        worded = [position for position, score in zip(order, scores, strict=True) if score != 0]
        return reciprocal_rank_fusion([near, worded[:places]], k)[:depth]

    def close(self) -> None:
        """Drops the dense index."""
        self._dense.close()
