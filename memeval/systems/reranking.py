"""Indexed systems whose best entries a reranker may reorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memeval.retrieval.reordering import Reordering
from memeval.retrieval.rerank import check_rerank
from memeval.systems.base import ANSWER, RUNTIME, SystemContext, SystemSettings
from memeval.systems.indexed import IndexedSystem, IndexT


@dataclass(frozen=True)
class RerankedSettings(SystemSettings):
    """The settings by which a system lets its user choose a reranker."""

    rerank: str = field(default="none", metadata=ANSWER)
    """What reorders the best entries: `none`, `lexical`, `endpoint`, the name of an installed
    reranker, or the class path of one.
    """
    rerank_url: str | None = field(default=None, metadata=ANSWER)
    """Address whose `/rerank` is called."""
    rerank_model: str | None = field(default=None, metadata=ANSWER)
    """The cross-encoder there."""
    rerank_key_env: str = field(default="RERANK_API_KEY", metadata=RUNTIME)
    """Environment variable that holds the key; an endpoint on this machine needs none."""

    def __post_init__(self) -> None:
        check_rerank(self)


class RerankingSystem(IndexedSystem[IndexT]):
    """An indexed system that hands its best entries to the reranker of its settings."""

    reordering: Reordering | None = None
    """None where nothing is reordered, and until `rerank_over`."""

    def __init__(self, settings: RerankedSettings, parts: SystemContext) -> None:
        self._reranker = parts.reranker(settings)
        super().__init__(settings, parts)

    def rerank_over(self, texts: Sequence[str]) -> None:
        """Fits the reranker on the texts of the entries, by position; called by `build`."""
        if self._reranker is not None:
            self.reordering = Reordering(self._reranker, texts)

    def close(self) -> None:
        super().close()
        self.reordering = None
