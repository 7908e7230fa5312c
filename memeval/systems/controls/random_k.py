"""The control that retrieves at random: the score with any `top_k` chunks."""

from pathlib import Path
from random import Random

from memeval.records import Query
from memeval.systems.indexed import IndexedSystem, Ranked, SearchIndex


class Order(SearchIndex):
    """An empty index: each question draws its own order."""


class RandomK(IndexedSystem[Order]):
    """Ranks the chunks in a random order, determined by the seed and the question."""

    async def build(self, saved: Path | None) -> Order:
        return Order()

    async def rank(self, index: Order, query: Query, depth: int) -> Ranked:
        # Seeded with a string: the order is the same in every process, and differs by question.
        draw = Random(f"{self.parts.seed}/{query.shown}")
        positions = draw.sample(range(len(self.chunks)), len(self.chunks))
        return [(position, None) for position in positions]
