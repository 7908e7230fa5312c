"""Rerankers: what one is, and how it is found by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, Self

from memeval.config.classes import class_at
from memeval.errors import UserError, unknown

if TYPE_CHECKING:
    from memeval.llm.network import Network

NONE = "none"
"""The name that leaves the first ranking as it is."""
BUILT_IN = {
    "lexical": "memeval.retrieval.rerank_lexical:LexicalReranker",
    "endpoint": "memeval.retrieval.rerank_endpoint:EndpointReranker",
}
"""Name -> `module:Class`, imported when it is chosen."""
GROUP = "memeval.rerankers"
"""The entry points by which a package adds rerankers of its own; a built-in name wins."""


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
