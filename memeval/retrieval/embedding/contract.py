"""The embedder contract: texts in, unit vectors out; and the embedders by name."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

from memeval.config.options import Registry
from memeval.config.schema import EmbedderConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memeval.llm.network import Network

Vectors: TypeAlias = "NDArray[np.float32]"


class Embedder(ABC):
    """Turns texts into vectors of length 1, so that a dot product is the cosine."""

    name: str
    """Name in reports and cache keys; includes everything that changes the vectors."""
    width: int
    """Numbers per vector."""

    @classmethod
    def from_settings(cls, settings: EmbedderConfig, network: "Network") -> Self:
        """The embedder for the settings `embedder.*`. Raises `UserError` for unusable settings.

        `network` is for embedders that call an endpoint. Default: built without arguments.
        """
        return cls()

    def fitted(self, texts: Sequence[str]) -> Self:
        """An embedder adapted to one case's own texts (document frequencies).

        Default: the embedder itself, for those that learn nothing.
        """
        return self

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), width), float32.

        A text without any known feature gets the zero vector. Raises `ModelError` if every attempt
        at an endpoint failed.
        """


EMBEDDERS = Registry("embedder", Embedder)  # type: ignore[type-abstract]
"""Embedders that are built in, from an installed package, or at a class path."""
