"""Reordering of a few candidates by what a first ranking overlooked: offline by the question's words, or by an endpoint."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, Protocol

from memeval.errors import UserError
from memeval.retrieval.bm25 import terms

DENSE_WEIGHT = 0.5

Rerank = Literal["none", "lexical", "endpoint"]


class RerankSettings(Protocol):
    """The settings of a system that offers the choice."""

    @property
    def rerank(self) -> Rerank: ...

    @property
    def rerank_url(self) -> str | None:
        """Address whose `/rerank` is called, for example https://api.jina.ai/v1."""
        ...

    @property
    def rerank_model(self) -> str | None: ...

    @property
    def rerank_key_env(self) -> str:
        """Environment variable that holds the key."""
        ...


class Reranker(Protocol):
    """Reorders candidates: positions in a corpus with the scores of a first ranking."""

    async def reorder(
        self, query: str, candidates: Sequence[tuple[int, float]]
    ) -> list[tuple[int, float]]:
        """The same positions with new scores, best first; ties keep the order of `candidates`. Raises `ModelError` where a call failed."""
        ...

    def close(self) -> None:
        """Gives connections back."""
        ...


def check_rerank(settings: RerankSettings) -> None:
    """Raises `UserError` where a setting that the choice needs is missing."""
    if settings.rerank != "endpoint":
        return
    for name, value, example in (
        ("rerank_url", settings.rerank_url, "https://api.jina.ai/v1"),
        ("rerank_model", settings.rerank_model, "jina-reranker-v2-base-multilingual"),
    ):
        if not value:
            raise UserError(
                f"system.rerank=endpoint needs system.{name}",
                f"for example:  system.{name}={example}",
            )


def build_reranker(
    settings: RerankSettings, corpus: Sequence[str], origin: str = ""
) -> Reranker | None:
    """The reranker that the settings choose over `corpus`; None for `none`. Raises `UserError` where its key is not set.

    `origin` names the run: what it paid for before a crash still counts as billed to it.
    """
    check_rerank(settings)
    if settings.rerank == "none":
        return None
    if settings.rerank == "lexical":
        return LexicalReranker(corpus)
    from memeval.retrieval.rerank_endpoint import EndpointReranker

    return EndpointReranker(
        corpus,
        str(settings.rerank_url),
        str(settings.rerank_model),
        settings.rerank_key_env,
        origin,
    )


async def reorder_best(
    reranker: Reranker, query: str, ranked: Sequence[tuple[int, float]], count: int
) -> list[tuple[int, float | None]]:
    """The ranking with its best `count` positions reordered.

    Those below lose their scores, which can't be compared with the new ones.
    """
    best = await reranker.reorder(query, ranked[:count])
    return [*best, *((position, None) for position, _ in ranked[count:])]


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
        self._idf = {
            term: math.log(1 + (size - count + 0.5) / (count + 0.5))
            for term, count in counts.items()
        }

    def rerank(
        self, query: str, candidates: Sequence[tuple[int, float]]
    ) -> list[tuple[int, float]]:
        """Positions in the corpus with their new scores, best first; ties keep the order of `candidates`."""
        asked = {term: self._idf[term] for term in dict.fromkeys(terms(query)) if term in self._idf}
        whole = sum(asked.values())

        def score(position: int, similarity: float) -> float:
            held = sum(idf for term, idf in asked.items() if term in self._terms[position])
            coverage = held / whole if whole else 0.0
            return DENSE_WEIGHT * min(max(similarity, 0.0), 1.0) + (1 - DENSE_WEIGHT) * coverage

        scored = [(position, score(position, similarity)) for position, similarity in candidates]
        return sorted(scored, key=lambda pair: -pair[1])

    async def reorder(
        self, query: str, candidates: Sequence[tuple[int, float]]
    ) -> list[tuple[int, float]]:
        return self.rerank(query, candidates)

    def close(self) -> None:
        """Holds nothing."""
