"""Reordering of the best of a ranking by a reranker."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memeval.errors import ModelError
from memeval.retrieval.rerank import Candidate, Reranker

Ranked = Sequence[tuple[int, float]]
"""Positions in a corpus with their scores, best first."""


class Reordering:
    """A reranker over the texts of one memory."""

    def __init__(self, reranker: Reranker, texts: Sequence[str]) -> None:
        self._reranker, self._texts = reranker.fitted(texts), texts

    async def reorder(self, query: str, ranked: Ranked) -> list[tuple[int, float]]:
        """The same positions with new scores, best first; ties keep the order of `ranked`.

        Raises `ModelError` if there is not one number for each.
        """
        candidates = [
            Candidate(position=position, text=self._texts[position], similarity=score)
            for position, score in ranked
        ]
        scores = list(await self._reranker.scores(query, candidates))
        if len(scores) != len(candidates):
            raise ModelError(f"the reranker gave {len(scores)} scores for {len(candidates)} texts")
        if not all(map(math.isfinite, scores)):
            raise ModelError("the reranker gave a score that is not a finite number")

        scored = [
            (candidate.position, score) for candidate, score in zip(candidates, scores, strict=True)
        ]
        return sorted(scored, key=lambda pair: -pair[1])

    async def reorder_best(
        self, query: str, ranked: Ranked, count: int
    ) -> list[tuple[int, float | None]]:
        """The ranking with its best `count` positions reordered.

        Those below lose their scores, which can't be compared with the new ones.
        """
        best = await self.reorder(query, ranked[:count])
        return [*best, *((position, None) for position, _ in ranked[count:])]
