"""Indexed systems whose best entries a reranker may reorder."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memeval.config.schema import RerankerConfig
from memeval.errors import UserError
from memeval.retrieval.rerank import (
    DEFAULT,
    NONE,
    Reordering,
    check_name,
    check_reranker,
    config_named,
)
from memeval.systems.base import ANSWER, SystemContext, SystemSettings
from memeval.systems.indexed import IndexedSystem, IndexT

OWN = "reranker"
"""The settings field with a system's reranker under `reranker=default`."""


@dataclass(frozen=True)
class RerankedSettings(SystemSettings):
    reranker: str = field(default=NONE, metadata=ANSWER)
    """Reranker under `reranker=default`: `none`, a name, or a class path."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if config_named(self.reranker).class_ is None:
            check_name(f"value of system.{OWN}", self.reranker)


def choose_reranker(
    chosen: RerankerConfig, settings: SystemSettings, system: str
) -> RerankerConfig:
    """The reranker of its config group, else of the system. Raises `UserError` if unusable."""
    own_name = None
    if isinstance(settings, RerankedSettings):
        own_name = settings.reranker

    resolved = chosen
    if chosen.name == DEFAULT:
        used = config_named(chosen.class_ or own_name or NONE)
        resolved = replace(chosen, name=used.name, class_=chosen.class_ or used.class_)

    # Otherwise a sweep over rerankers would report that a reranker makes no difference here.
    if resolved.name != NONE and own_name is None:
        raise UserError(
            f"reranker={resolved.name} has no effect: system={system} does not rerank",
            "use:  reranker=none, or a system that reranks, such as system=rag",
        )

    check_reranker(resolved)
    return resolved


class RerankingSystem(IndexedSystem[IndexT]):
    """An indexed system that passes its best entries to the cell's reranker."""

    reordering: Reordering | None = None
    """None until `rerank_over` is called, and if nothing is reordered."""

    def __init__(self, settings: RerankedSettings, parts: SystemContext) -> None:
        self._reranker = parts.reranker(settings.reranker)
        super().__init__(settings, parts)

    def rerank_over(self, texts: Sequence[str]) -> None:
        """Fits the reranker on the texts of the entries, by position; called by `build`."""
        if self._reranker is not None:
            self.reordering = Reordering(self._reranker, texts)

    def close(self) -> None:
        super().close()
        self.reordering = None
