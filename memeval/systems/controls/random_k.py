"""The control that retrieves at random: the value of any `top_k` chunks."""

from __future__ import annotations

from pathlib import Path
from random import Random

from memeval.records import Query
from memeval.systems.indexed import IndexedSystem, Ranked


class Order:
    """An empty index: each question draws its own order."""

    def save(self, folder: Path) -> None:
        """Writes nothing."""

    def close(self) -> None:
        """Holds nothing that must be given back."""


class RandomK(IndexedSystem[Order]):
    """Ranks the chunks in a random order, drawn by the seed and the question."""

    async def build(self, saved: Path | None) -> Order:
        return Order()

    async def rank(self, index: Order, query: Query, depth: int) -> Ranked:
        # Seeded by a string: the same in every process, and another for each question.
        draw = Random(f"{self.parts.seed}/{query.shown}")
        positions = draw.sample(range(len(self.chunks)), len(self.chunks))
        return [(position, None) for position in positions]
