"""A graph of what is mentioned together, searched from the question's entities one hop out."""

from __future__ import annotations

import asyncio
from pathlib import Path

from memeval.records import Query
from memeval.retrieval.dense import DenseIndex
from memeval.retrieval.entities import content_words, entities
from memeval.retrieval.entity_graph import EntityGraph
from memeval.systems.base import DumpItem
from memeval.systems.indexed import IndexedSystem, Ranked

SIMILAR = 0.3
"""Least cosine at which an entity is used in place of one that the graph does not have."""
STAND_INS = 3
"""Entities that are used for a question none of whose entities is known."""


class GraphRagLite(IndexedSystem[DenseIndex]):
    """Ranks chunks by the entities that they hold (`EntityGraph`).

    Those of the question count fully, those that co-occur with them in part. A question's entity is
    matched by its name, else by the most similar name under the cell's embedder; the index holds
    these names. Entities are found by rules (`memeval.retrieval.entities`), without a model.

    Nothing is lost at a compression: the agent's window is then shown as well.
    """

    shows_window = True
    _graph: EntityGraph

    def reset(self) -> None:
        super().reset()
        self._graph = EntityGraph(())

    def texts(self) -> list[str]:
        return list(self._graph.names.values())

    async def build(self, saved: Path | None) -> DenseIndex:
        contents = [chunk.content for chunk in self.chunks]
        self._graph = await asyncio.to_thread(EntityGraph, contents)
        return await DenseIndex.open(self.parts.embedder, self.texts(), saved)

    def dump(self) -> list[DumpItem]:
        """The entities, each with the turns of the chunks that hold it."""
        items: list[DumpItem] = []
        for key, positions in self._graph.holders().items():
            turn_ids = [turn for position in positions for turn in self.chunks[position].turn_ids]
            items.append({"kind": "entity", "text": self._graph.names[key], "turn_ids": turn_ids})

        return items

    async def rank(self, index: DenseIndex, query: Query, depth: int) -> Ranked:
        weights = self._graph.one_hop(await self._seeds(index, query.text))
        return self._graph.ranking(weights)[:depth]

    async def _seeds(self, index: DenseIndex, question: str) -> dict[str, float]:
        """Weights of the graph's entities that the question mentions.

        1 for a name that matches, the cosine for one that is used in its place.
        """
        known = self._graph.names
        mentioned = entities(question)
        seeds = {key: 1.0 for key in mentioned | content_words(question) if key in known}

        for key, name in mentioned.items():
            if key not in known:
                # The right side wins: a name that matched keeps its weight of 1.
                seeds = await self._similar(index, name, 1, SIMILAR) | seeds

        # A question without any known entity still gets a ranking.
        return seeds or await self._similar(index, question, STAND_INS, 0.0)

    async def _similar(
        self, index: DenseIndex, text: str, count: int, least: float
    ) -> dict[str, float]:
        if not text.strip():
            return {}

        keys = list(self._graph.names)
        nearest = await index.search(text, count)
        return {keys[position]: cosine for position, cosine in nearest if cosine > least}
