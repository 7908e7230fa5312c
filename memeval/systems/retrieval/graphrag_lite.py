"""A graph of what is spoken of together, searched from the question's entities one hop out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memeval.records import MemoryChunk, Query, Retrieved
from memeval.retrieval.dense import DenseIndex
from memeval.retrieval.entities import content_words, entities
from memeval.retrieval.entity_graph import EntityGraph
from memeval.systems.base import RecallSystem, SystemContext, SystemSettings
from memeval.systems.chunk_file import read_chunks, read_window, write_chunks

SIMILAR = 0.3
"""Least cosine at which an entity stands in for one that the graph does not have."""
STAND_INS = 3
"""Entities that stand in for a question none of whose entities is known."""


class GraphRagLite(RecallSystem):
    """Ranks chunks by the entities that they hold: those of the question, and in part those that co-occur with them (`EntityGraph`).

    A question's entity is matched by its name, else by the most similar name under the cell's embedder. Nothing is lost at a compression;
    what the agent's window still holds is then shown as well. Entities are found by rules (`memeval.retrieval.entities`), without a model.
    """

    in_thread = False
    _names: DenseIndex | None = None

    def __init__(self, settings: SystemSettings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self.reset()

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        self.close()
        self._chunks: list[MemoryChunk] = []
        self._window: list[MemoryChunk] | None = None
        self._graph = EntityGraph(())

    def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)
        if self._window is not None:
            self._window.append(chunk)

    def compress(self, retained: Sequence[MemoryChunk]) -> None:
        self._window = list(retained)

    def window(self) -> Sequence[MemoryChunk]:
        return self._window or ()

    async def _build(self) -> list[str]:
        self._graph = await asyncio.to_thread(
            EntityGraph, [chunk.content for chunk in self._chunks]
        )
        return list(self._graph.names.values())

    async def consolidate(self) -> None:
        self.close()
        self._names = await DenseIndex.build(self.parts.embedder, await self._build())

    async def recall(self, query: Query, depth: int) -> list[Retrieved]:
        weights = self._graph.one_hop(await self._seeds(query.text))
        return [
            self._unit(position, score) for position, score in self._graph.ranking(weights)[:depth]
        ]

    async def _seeds(self, question: str) -> dict[str, float]:
        """The graph's entities that the question speaks of, 1 by name and the cosine where one stands in."""
        asked = entities(question)
        seeds = {key: 1.0 for key in asked | content_words(question) if key in self._graph.names}
        missing = [name for key, name in asked.items() if key not in self._graph.names]
        for name in missing:
            seeds = await self._similar(name, 1, SIMILAR) | seeds
        return seeds or await self._similar(question, STAND_INS, 0.0)

    async def _similar(self, text: str, count: int, least: float) -> dict[str, float]:
        if not self._names or not text.strip():
            return {}
        keys = list(self._graph.names)
        found = await self._names.search(text, count)
        return {keys[position]: cosine for position, cosine in found if cosine > least}

    def _unit(self, position: int, score: float) -> Retrieved:
        return Retrieved(self._chunks[position].text, self._chunks[position].turn_ids, score)

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._chunks, self._window)
        if self._names:
            self._names.save(folder)

    async def load(self, folder: Path) -> None:
        self.close()
        self._chunks = read_chunks(folder)
        self._window = read_window(folder)
        self._names = await DenseIndex.load(folder, self.parts.embedder, await self._build())

    def close(self) -> None:
        if self._names:
            self._names.close()
        self._names = None
