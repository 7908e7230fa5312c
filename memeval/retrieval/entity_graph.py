"""Entities mentioned together, and the chunks that a question's entities lead to."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from memeval.retrieval.entities import entities

HOP = 0.5
"""Share of an entity's weight that is left after one hop."""

Weights = Mapping[str, float]
"""Weight of each entity for a question, by its key."""


class EntityGraph:
    """Entities joined to the lines that mention them.

    Two entities co-occur as often as they share a line. This is a networkx graph between entities
    (keys) and lines (numbers). The co-occurrence graph is its projection on the entities, computed
    when needed: if it were stored, its edges would grow with the square of a line's length.
    """

    def __init__(
        self, chunks: Sequence[str], read: Callable[[str], Mapping[str, str]] = entities
    ) -> None:
        """`chunks` have `speaker: text` lines, one per turn; `read` returns a line's entities."""
        # Imported late: most systems do not need the library.
        import networkx as nx  # type: ignore[import-untyped]

        self._graph: nx.Graph = nx.Graph()
        self._chunks: list[set[str]] = [set() for _ in chunks]
        self.names: dict[str, str] = {}
        """The name under which each entity was first met, by its key."""
        self._lines = 0
        for held, chunk in zip(self._chunks, chunks, strict=True):
            for line in chunk.split("\n"):
                mentioned = read(line)
                self._graph.add_edges_from((key, self._lines) for key in mentioned)
                self._lines += 1
                held.update(mentioned)
                for key, name in mentioned.items():
                    self.names.setdefault(key, name)

    def holders(self) -> dict[str, list[int]]:
        """Positions of the chunks that mention each entity, by its key."""
        positions: dict[str, list[int]] = {key: [] for key in self.names}
        for position, held in enumerate(self._chunks):
            for key in held:
                positions[key].append(position)

        return positions

    def one_hop(self, seeds: Weights) -> dict[str, float]:
        """Weights of the seeds and of the entities that share a line with one of them.

        weight(n) = 0.5 * max over the seeds s of weight(s) * c(s, n) / sqrt(l(s) * l(n)), where c
        is the number of lines that two entities share, and l that of one. A seed whose own weight
        is larger keeps it.
        """
        weights = dict(seeds)
        for seed, weight in seeds.items():
            lines = self._graph[seed]
            shared = Counter(chain.from_iterable(map(self._graph.__getitem__, lines)))
            for key, count in shared.items():
                near = HOP * weight * count / math.sqrt(len(lines) * len(self._graph[key]))
                weights[key] = max(weights.get(key, 0.0), near)

        return weights

    def ranking(self, weights: Weights) -> list[tuple[int, float]]:
        """Chunks that mention a weighted entity, best first and ties by position.

        score(u) = sum over the entities e of u of weight(e) * ln(1 + L / l(e)), L lines in all:
        names that occur everywhere carry little weight.
        """
        worth = dict(weights)
        for key in weights:
            worth[key] *= math.log(1 + self._lines / len(self._graph[key]))

        ranked = []
        for position, held in enumerate(self._chunks):
            # Sorted: float sums depend on the order, and a set's order differs between processes.
            score = sum(map(worth.__getitem__, sorted(held & worth.keys())))
            if score > 0:
                ranked.append((position, score))

        return sorted(ranked, key=lambda pair: -pair[1])
