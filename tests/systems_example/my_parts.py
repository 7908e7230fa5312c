"""Your own embedder and reranker, both offline."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memeval.config.schema import EmbedderConfig
from memeval.llm.network import Network
from memeval.retrieval.embedding.contract import Embedder
from memeval.retrieval.rerank import Candidate, Reranker


class WordHashes(Embedder):
    """Counts of words, hashed to the width."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.name = f"word-hashes/{width}"

    @classmethod
    def from_settings(cls, settings: EmbedderConfig, network: Network) -> WordHashes:
        return cls(settings.width or 256)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.width), dtype=np.float32)
        for position, text in enumerate(texts):
            for word in text.lower().split():
                rows[position, zlib.crc32(word.encode()) % self.width] += 1

        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.maximum(lengths, 1)
        return rows


class SharedWords(Reranker):
    """Scores a text by the words that it shares with the question."""

    async def scores(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        asked = set(query.lower().split())
        return [float(len(asked & set(candidate.text.lower().split()))) for candidate in candidates]
