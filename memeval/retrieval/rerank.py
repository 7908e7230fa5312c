"""Reordering of the best candidates by what a first ranking overlooked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, Self

from memeval.config.classes import class_at
from memeval.errors import ModelError, UserError, unknown
from memeval.retrieval.bm25 import terms

if TYPE_CHECKING:
    from memeval.llm.network import Network

NONE = "none"
"""The name that leaves the first ranking as it is."""
BUILT_IN = {
    "lexical": "memeval.retrieval.rerank:LexicalReranker",
    "endpoint": "memeval.retrieval.rerank_endpoint:EndpointReranker",
}
"""Name -> `module:Class`, imported when it is chosen."""
GROUP = "memeval.rerankers"
"""The entry points by which a package adds rerankers of its own; a built-in name wins."""
DENSE_WEIGHT = 0.5

Ranked = Sequence[tuple[int, float]]
"""Positions in a corpus with their scores, best first."""


class RerankSettings(Protocol):
    """The settings of a system that offers the choice."""

    @property
    def rerank(self) -> str:
        """`none`, the name of a reranker, or the class path of one."""

    @property
    def rerank_url(self) -> str | None:
        """Address whose `/rerank` is called, for example https://api.jina.ai/v1."""

    @property
    def rerank_model(self) -> str | None:
        """The cross-encoder there."""

    @property
    def rerank_key_env(self) -> str:
        """Environment variable that holds the key."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of the best texts of a first ranking."""

    position: int
    """In the texts that the reranker was fitted on."""
    text: str
    similarity: float
    """Its score in the first ranking."""


class Reranker(ABC):
    """Scores the candidates of a first ranking again."""

    @classmethod
    def from_settings(cls, settings: RerankSettings, network: Network | None) -> Self:
        """The reranker that a system's settings ask for. Raises `UserError` for unusable ones.

        `network` is for rerankers that call an endpoint; None outside of a run. Default: built
        without arguments.
        """
        return cls()

    def fitted(self, texts: Sequence[str]) -> Reranker:
        """A reranker adapted to the texts of one memory.

        Default: the same one, for rerankers that learn nothing.
        """
        return self

    @abstractmethod
    async def scores(self, query: str, candidates: Sequence[Candidate]) -> Sequence[float]:
        """A score for each candidate; higher is better. Raises `ModelError` where a call failed."""


class Reordering:
    """A reranker over the texts of one memory."""

    def __init__(self, reranker: Reranker, texts: Sequence[str]) -> None:
        self._reranker, self._texts = reranker.fitted(texts), texts

    async def reorder(self, query: str, ranked: Ranked) -> list[tuple[int, float]]:
        """The same positions with new scores, best first; ties keep the order of `ranked`.

        Raises `ModelError` where there is not one number for each.
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


def check_rerank(settings: RerankSettings) -> None:
    """Raises `UserError` for an unknown reranker, and where a setting that it needs is missing."""
    if settings.rerank != NONE:
        path_of(settings.rerank)
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


def path_of(name: str) -> str:
    """The class path behind the name of a reranker; a class path is one already."""
    if ":" in name:
        return name
    if path := BUILT_IN.get(name):
        return path
    added = {point.name: point.value for point in entry_points(group=GROUP)}
    if name not in added:
        raise unknown("value of system.rerank", name, {NONE, *BUILT_IN, *added})
    return added[name]


def reranker_class(name: str) -> type[Reranker]:
    """The class of a reranker other than `none`. Raises `UserError` where there is none."""
    what = f"reranker '{name}'"
    return class_at(path_of(name), Reranker, "system", what)  # type: ignore[type-abstract]


def build_reranker(settings: RerankSettings, network: Network | None = None) -> Reranker | None:
    """The reranker that the settings choose; None for `none`."""
    check_rerank(settings)
    if settings.rerank == NONE:
        return None
    return reranker_class(settings.rerank).from_settings(settings, network)


class LexicalReranker(Reranker):
    """Mixes the similarity of a first ranking with how much of the question a text holds.

    score = 0.5 * similarity, cut to [0, 1] + 0.5 * coverage
    coverage = sum of idf over the question's distinct terms that the text holds
               / the same sum over all its terms that the corpus holds
    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5)), n of the corpus' N texts hold t

    Rare words of the question (names, places) that an embedding blurs bring a text up; a word in
    every text moves nothing. Coverage is 0 where no term of the question is in the corpus: the
    first ranking then stays.
    """

    def __init__(self, corpus: Sequence[str] = ()) -> None:
        self._terms = [frozenset(terms(text)) for text in corpus]
        counts = Counter(term for held in self._terms for term in held)
        size = len(self._terms)
        self._idf = {
            term: math.log(1 + (size - count + 0.5) / (count + 0.5))
            for term, count in counts.items()
        }

    def fitted(self, texts: Sequence[str]) -> LexicalReranker:
        return LexicalReranker(texts)

    async def scores(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        asked = {term: self._idf[term] for term in dict.fromkeys(terms(query)) if term in self._idf}
        whole = sum(asked.values())

        scores = []
        for candidate in candidates:
            terms_held = self._terms[candidate.position]
            held = sum(idf for term, idf in asked.items() if term in terms_held)
            coverage = held / whole if whole else 0.0
            similarity = min(max(candidate.similarity, 0.0), 1.0)
            scores.append(DENSE_WEIGHT * similarity + (1 - DENSE_WEIGHT) * coverage)
        return scores
