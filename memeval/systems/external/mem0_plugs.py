"""Adapters for the cell's embedder and model to mem0, and mem0's vector store made repeatable.

Importing this module imports mem0.
"""

import logging
from collections.abc import Sequence
from typing import Any

from mem0.configs.llms.base import BaseLlmConfig  # type: ignore[import-untyped]
from mem0.embeddings.base import EmbeddingBase  # type: ignore[import-untyped]
from mem0.llms.base import LLMBase  # type: ignore[import-untyped]
from mem0.utils import factory, spacy_models  # type: ignore[import-untyped]
from mem0.vector_stores.qdrant import Qdrant  # type: ignore[import-untyped]
from qdrant_client.models import Distance

SLOT = "langchain"
"""mem0 accepts only its own provider names; under this one, `model` is an object."""


class CellEmbedder(EmbeddingBase):  # type: ignore[misc]
    """Passes texts to the `vectors_of` of the object given as `model`."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = "add"
    ) -> list[list[float]]:
        vectors: list[list[float]] = self.config.model.vectors_of(texts)
        return vectors


class CellModel(LLMBase):  # type: ignore[misc]
    """Passes messages to the `reply_to` of the object given as `model`."""

    def generate_response(
        self,
        messages: list[dict[str, str]],
        tools: Any = None,
        tool_choice: str = "auto",
        **options: Any,
    ) -> str:
        reply: str = self.config.model.reply_to(messages, options)
        return reply


class UnitQdrant(Qdrant):  # type: ignore[misc]
    """mem0's store, made repeatable and quicker for the memories of one user.

    The dot product is used in place of the cosine, which is the same for unit vectors. Under the
    cosine, local Qdrant normalises all stored vectors again, in place, at each search, and scores
    depend on earlier searches. A filter by user is dropped if all memories pass it, as checking
    each memory takes half of the time of a search. Equal scores are in the order of insertion:
    local Qdrant's own order differs between a store that was built and one that was loaded.
    """

    keeps_users = False
    """Whether it contains the memories of several users."""

    def create_col(
        self, vector_size: int, on_disk: bool, distance: Distance = Distance.DOT
    ) -> None:
        self._positions: dict[str, int] = {}
        super().create_col(vector_size, on_disk, distance)

    def insert(
        self,
        vectors: list[list[float]],
        payloads: list[dict[str, Any]] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        super().insert(vectors, payloads, ids)
        for name in ids or range(len(vectors)):
            self._positions.setdefault(str(name), len(self._positions))

    def search(
        self,
        query: str,
        vectors: list[float],
        top_k: int = 5,
        filters: dict[str, Any] | None = None,
    ) -> list[Any]:
        kept = dict(filters or {})
        if not self.keeps_users:
            kept.pop("user_id", None)

        count = top_k + 1
        while True:
            hits: list[Any] = super().search(query, vectors, count, kept or None)
            # Of several memories with the lowest score, any may be among the first.
            if len(hits) < count or hits[-1].score < hits[top_k - 1].score:
                break

            count *= 2

        hits.sort(key=lambda hit: (-hit.score, self._positions[str(hit.id)]))
        return hits[:top_k]


def plug_in(*, entities: bool) -> None:
    """Registers the classes with mem0.

    Without `entities`, keeps mem0 from fetching the spaCy model that is missing.
    """
    # mem0 checks provider names against its own lists, so a class can only take the place of
    # another.
    factory.EmbedderFactory.provider_to_class[SLOT] = f"{__name__}.CellEmbedder"
    factory.LlmFactory.provider_to_class[SLOT] = (f"{__name__}.CellModel", BaseLlmConfig)
    factory.VectorStoreFactory.provider_to_class["qdrant"] = f"{__name__}.UnitQdrant"
    logging.getLogger("mem0.memory.main").addFilter(_is_not_reported)
    if not entities:
        # mem0 skips the download after a failed one. It has no public switch for that.
        spacy_models._load_failed_full = spacy_models._load_failed_lemma = True


def _is_not_reported(record: logging.LogRecord) -> bool:
    """False for a failed model call, whose error mem0 also raises: memeval reports it."""
    return not record.getMessage().startswith("LLM extraction failed")
