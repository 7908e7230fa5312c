"""The embedder contract: texts in, unit vectors out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Embedder(ABC):
    """Turns texts into vectors of length 1, so that a dot product is the cosine."""

    name: str
    """As reports and cache keys show it; holds everything that changes its vectors."""
    width: int
    """Numbers per vector."""

    def fitted(self, texts: Sequence[str]) -> Self:
        """An embedder adapted to one case's own texts (document frequencies); the same one where nothing is learnt."""
        return self

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), width), float32. A text without any known feature gets the zero vector.

        Raises `ModelError` where an endpoint failed for good.
        """
