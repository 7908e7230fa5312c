"""The graph of artifacts, built without a model, and how scores spread over its edges."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memeval.retrieval.embedding.contract import Vectors
from memeval.systems.cogcanvas.artifacts import Artifact
from memeval.systems.cogcanvas.links import REFERENCES, Edges, Links, next_events
from memeval.systems.cogcanvas.settings import CogCanvasSettings

Positions = NDArray[np.intp]

# As published, the setting leaves the dates of artifacts unchanged: it only removes two rules. The
# event chain is memeval's own rule and is removed with them.
TEMPORAL_RULES = frozenset({"constraint", "event", "chain"})
"""The rules that `temporal_edges` turns on or off."""
# As published.
DECAY = 0.8
"""Fraction of a score that remains after each hop."""


class Canvas:
    """The edges between artifacts, which lead from newer to older ones."""

    def __init__(
        self, artifacts: Sequence[Artifact], vectors: Vectors, settings: CogCanvasSettings
    ) -> None:
        edges: list[Edges] = []
        if artifacts:
            alike = (vectors @ vectors.T).astype(np.float64)
            edges += Links(artifacts, alike, settings).by_rule()

        if settings.event_chain:
            edges.append(Edges(REFERENCES, "chain", next_events(artifacts)))

        self.size = len(artifacts)
        self.connect(edges)

    def connect(self, edges: Sequence[Edges]) -> None:
        """Replaces the graph's edges."""
        self.edges = edges
        untimed = [rule for rule in edges if rule.rule not in TEMPORAL_RULES]
        self._adjacency = {
            True: _Adjacency.from_edges(edges, self.size),
            False: _Adjacency.from_edges(untimed, self.size),
        }

    def edges_by_rule(self) -> Counter[str]:
        return Counter({edges.rule: len(edges.pairs) for edges in self.edges if len(edges.pairs)})

    @cached_property
    def edge_counts(self) -> dict[str, int]:
        """How many edges there are, and how many of them `temporal_edges` turns on or off."""
        by_rule = self.edges_by_rule()
        temporal = sum(by_rule[rule] for rule in TEMPORAL_RULES)
        return {"temporal": temporal, "all": by_rule.total()}

    def expand(self, seeds: Mapping[int, float], hops: int, *, temporal: bool) -> dict[int, float]:
        """The best score that reaches each artifact within `hops` either way; 0.8 per hop."""
        adjacency = self._adjacency[temporal]
        # 0 is "not reached": seeds have scores above 0.
        reached = np.zeros(self.size)
        reached[list(seeds)] = list(seeds.values())

        for _ in range(hops):
            reached[adjacency.nodes] = np.maximum(
                reached[adjacency.nodes],
                np.maximum.reduceat(reached[adjacency.ends] * DECAY, adjacency.starts),
            )

        return {int(position): float(reached[position]) for position in np.flatnonzero(reached)}

    def expand_as_published(
        self, seeds: Mapping[int, float], hops: int, *, temporal: bool
    ) -> dict[int, float]:
        """Scores of reached artifacts, as in the published search: the first visit counts."""
        adjacency = self._adjacency[temporal]
        reached = _spread(seeds, adjacency, hops)
        if hops == 1:
            return reached

        # With more than one hop, the published search starts again from everything that the first
        # one found. So it reaches twice as far, and a seed that is met on the way keeps a
        # neighbour's score.
        return _search_from_each(reached, adjacency, hops)


class _Adjacency(Struct, frozen=True):
    """Adjacency lists of all edges, in both directions."""

    nodes: Positions
    """The nodes that have edges."""
    starts: Positions
    """Where the neighbours of each of these nodes begin in `ends`."""
    ends: Positions
    """Neighbours of a node: those it refers to, that refer to it, that it caused, its causes."""
    bounds: Positions
    """By position of an artifact: start of its neighbours in `ends`; the last entry is the end."""

    @classmethod
    def from_edges(cls, edges: Sequence[Edges], size: int) -> Self:
        """The adjacency lists of edges between `size` artifacts."""
        parts = [np.zeros((4, 0), dtype=np.intp)]
        for rule in edges:
            newer, older = rule.pairs.T
            # The published graph stores each `caused_by` edge a second time, reversed, as
            # `leads_to`, and visits that list first.
            forward, backward = (0, 1) if rule.kind == REFERENCES else (3, 2)
            parts.append(np.stack([newer, np.full_like(newer, forward), newer, older]))
            parts.append(np.stack([older, np.full_like(newer, backward), newer, newer]))

        # The sort is stable: the edges of one artifact stay in the order of the rules.
        node, side, newer, end = np.concatenate(parts, axis=1)
        order = np.lexsort((newer, side, node))
        node, ends = node[order], end[order]
        nodes, starts = np.unique(node, return_index=True)
        bounds = np.searchsorted(node, np.arange(size + 1))
        return cls(nodes=nodes, starts=starts, ends=ends, bounds=bounds)

    def neighbours(self, node: int) -> list[int]:
        """The neighbours of a node, possibly several times."""
        nodes: list[int] = self.ends[self.bounds[node] : self.bounds[node + 1]].tolist()
        return nodes


def _spread(seeds: Mapping[int, float], adjacency: _Adjacency, hops: int) -> dict[int, float]:
    """Breadth first from all seeds together: a neighbour gets its parent's score times 0.8^hop."""
    reached = dict(seeds)
    border = list(seeds)
    for hop in range(1, hops + 1):
        following = []
        for parent in border:
            for node in adjacency.neighbours(parent):
                if node not in reached:
                    # The published loop multiplies a score that has decayed already: three hops
                    # leave 0.8, 0.8^3 and 0.8^6 of it.
                    reached[node] = reached[parent] * DECAY**hop
                    following.append(node)

        border = following

    return reached


def _search_from_each(
    seeds: dict[int, float], adjacency: _Adjacency, hops: int
) -> dict[int, float]:
    """Searches from one seed after the other: a node keeps the score of the first seed to reach it.

    The score is the seed's times 0.8^distance.
    """
    # A search from each of a thousand seeds of a dense graph would take minutes. So all searches
    # run together: the number of the first seed within `hops` spreads to the neighbours, hop by
    # hop, and the last hop that changed it is its distance.
    scores = np.array([*seeds.values(), 0.0])
    first = np.full(len(adjacency.bounds) - 1, len(seeds))
    first[list(seeds)] = np.arange(len(seeds))
    distance = np.zeros_like(first)

    for hop in range(1, hops + 1):
        nearer = first.copy()
        of_neighbours = np.minimum.reduceat(first[adjacency.ends], adjacency.starts)
        nearer[adjacency.nodes] = np.minimum(first[adjacency.nodes], of_neighbours)
        distance[nearer < first] = hop
        first = nearer

    reached = np.flatnonzero(first < len(seeds))
    spread = scores[first[reached]] * DECAY ** distance[reached]
    return dict(zip(reached.tolist(), spread.tolist(), strict=True))
