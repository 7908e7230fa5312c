"""Rerankers: their contract, their look-up by name, and the reordering of a ranking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from memeval.config.options import Registry, available, is_available
from memeval.config.schema import RerankerConfig
from memeval.errors import ModelError, UserError, unknown

if TYPE_CHECKING:
    from memeval.llm.network import Network

DEFAULT = "default"
"""Name that selects the system's own setting."""
NONE = "none"
"""Name that leaves the first ranking unchanged."""
ENDPOINT = "endpoint"
OPTIONS = "reranker"
"""The group in conf/."""

Ranked = Sequence[tuple[int, float]]
"""Positions in a corpus with their scores, best first."""


class Candidate(Struct, frozen=True):
    """One of the best texts of a first ranking."""

    position: int
    """Position in the texts that the reranker was fitted on."""
    text: str
    similarity: float
    """Its score in the first ranking."""


class Reranker(ABC):
    """Scores the candidates of a first ranking again."""

    @classmethod
    def from_settings(cls, settings: RerankerConfig, network: Network | None) -> Self:
        """The reranker that the group `reranker` selects. Raises `UserError` for unusable settings.

        `network` is for rerankers that call an endpoint; None outside of a run. Default: built
        without arguments.
        """
        return cls()

    def fitted(self, texts: Sequence[str]) -> Reranker:
        """A reranker adapted to the texts of one memory.

        Default: the reranker itself, for those that learn nothing.
        """
        return self

    @abstractmethod
    async def scores(self, query: str, candidates: Sequence[Candidate]) -> Sequence[float]:
        """A score for each candidate; higher is better. Raises `ModelError` if a call failed."""


RERANKERS = Registry(OPTIONS, Reranker)  # type: ignore[type-abstract]


def config_named(name: str) -> RerankerConfig:
    """The settings of a reranker given only by name or class path."""
    if ":" in name:
        return RerankerConfig(name=name.rpartition(":")[2], class_=name)

    return RerankerConfig(name=name)


def check_name(noun: str, name: str) -> None:
    """Raises `UserError` if no reranker has the name; `noun` is the word for it in the message."""
    if name == DEFAULT or not is_available(OPTIONS, name):
        raise unknown(noun, name, set(available(OPTIONS)) - {DEFAULT})


def check_reranker(settings: RerankerConfig) -> None:
    """Raises `UserError` for an unknown reranker, and if a setting that it needs is missing."""
    if settings.name == NONE or settings.class_ is not None:
        return

    check_name("reranker", settings.name)
    if settings.name != ENDPOINT:
        return

    for field, value, example in (
        ("base_url", settings.base_url, "https://api.jina.ai/v1"),
        ("model", settings.model, "jina-reranker-v2-base-multilingual"),
    ):
        if not value:
            raise UserError(
                f"reranker=endpoint needs reranker.{field}",
                f"for example:  reranker.{field}={example}",
            )


def build_reranker(settings: RerankerConfig, network: Network | None = None) -> Reranker | None:
    """The reranker that the settings choose; None for `none`."""
    check_reranker(settings)
    if settings.name == NONE:
        return None

    return RERANKERS.load(settings.name, settings.class_).from_settings(settings, network)


def build_named(name: str) -> Reranker | None:
    """The reranker with this name or class path, with its default settings; None for `none`."""
    return build_reranker(config_named(name))


class Reordering:
    """A reranker over the texts of one memory."""

    def __init__(self, reranker: Reranker, texts: Sequence[str]) -> None:
        self._reranker, self._texts = reranker.fitted(texts), texts

    async def reorder(self, query: str, ranked: Ranked) -> list[tuple[int, float]]:
        """The same positions with new scores, best first; ties keep the order of `ranked`.

        Raises `ModelError` if there is not one finite score for each.
        """
        import numpy as np

        candidates = [
            Candidate(position, self._texts[position], score) for position, score in ranked
        ]
        given = await self._reranker.scores(query, candidates)
        scores = np.asarray(None if given is None else list(given), dtype=np.float64)
        if scores.shape != (len(candidates),):
            raise ModelError(
                f"the reranker returned scores of shape {scores.shape} for {len(candidates)} texts"
            )
        if not np.isfinite(scores).all():
            raise ModelError("the reranker returned a score that is not a finite number")

        scored = zip((position for position, _ in ranked), scores.tolist(), strict=True)
        return sorted(scored, key=lambda pair: -pair[1])

    async def reorder_best(
        self, query: str, ranked: Ranked, count: int
    ) -> list[tuple[int, float | None]]:
        """The ranking with its best `count` positions reordered.

        Those below lose their scores, which can't be compared with the new ones.
        """
        best = await self.reorder(query, ranked[:count])
        unchanged = [(position, None) for position, _ in ranked[count:]]
        return [*best, *unchanged]
