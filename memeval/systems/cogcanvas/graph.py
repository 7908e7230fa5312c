"""The graph of artifacts, built without a model, and how scores spread over its edges."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from memeval.systems.cogcanvas.artifacts import Artifact
from memeval.systems.cogcanvas.links import REFERENCES, Links, next_events
from memeval.systems.cogcanvas.settings import Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memeval.retrieval.embedding.contract import Vectors

    Positions = NDArray[np.intp]
    Scores = NDArray[np.float64]

# As published, the switch leaves the dates of artifacts as they are: it only removes two rules.
# The chain is memeval's own and goes with them.
TEMPORAL_RULES = frozenset({"constraint", "event", "chain"})
"""The rules that `temporal_edges` switches."""
# As published.
DECAY = 0.8
"""Share of a score that is left one hop further out."""


class Canvas:
    """A networkx graph of artifacts; edges (`kind`, `rule`) lead from newer to older ones."""

    def __init__(self, artifacts: Sequence[Artifact], vectors: Vectors, settings: Settings) -> None:
        # Imported late: only runs of this system load the library.
        import networkx as nx  # type: ignore[import-untyped]

        self.graph: Any = nx.MultiDiGraph()
        self.graph.add_nodes_from(range(len(artifacts)))
        if artifacts:
            alike = (vectors @ vectors.T).astype(np.float64)
            for kind, rule, pairs in Links(artifacts, alike, settings).by_rule():
                self._link(kind=kind, rule=rule, pairs=pairs)

            if settings.event_chain:
                self._link(kind=REFERENCES, rule="chain", pairs=next_events(artifacts))

        self._ways = {temporal: self._direct_edges(temporal) for temporal in (True, False)}

    def _link(self, *, kind: str, rule: str, pairs: Iterable[tuple[int, int]]) -> None:
        self.graph.add_edges_from(
            (source, target, {"kind": kind, "rule": rule}) for source, target in pairs
        )

    def edges_by_rule(self) -> Counter[str]:
        return Counter(rule for _, _, rule in self.graph.edges(data="rule"))

    @cached_property
    def edge_counts(self) -> dict[str, int]:
        """How many edges there are, and how many of them `temporal_edges` switches."""
        by_rule = self.edges_by_rule()
        temporal = sum(by_rule[rule] for rule in TEMPORAL_RULES)
        return {"temporal": temporal, "all": by_rule.total()}

    def _direct_edges(self, temporal: bool) -> tuple[Positions, Positions, Positions]:
        """Edges in both directions, sorted by end: starts, distinct ends, where each end's edges
        begin.
        """
        # A set: two rules may link the same pair.
        edges = {(source, target) for source, target, _ in self._edges(temporal)}
        both_ways = edges | {(target, source) for source, target in edges}
        ways = np.array(sorted(both_ways), dtype=np.intp).reshape(-1, 2)
        ends, starts = np.unique(ways[:, 0], return_index=True)
        return ways[:, 1], ends, starts

    def _edges(self, temporal: bool) -> Iterable[tuple[int, int, str]]:
        """The edges that count, with their kinds."""
        for source, target, data in self.graph.edges(data=True):
            if temporal or data["rule"] not in TEMPORAL_RULES:
                yield source, target, data["kind"]

    def expand(self, scores: Scores, hops: int, *, temporal: bool) -> Scores:
        """The best score that reaches each artifact within `hops`, 0.8 per hop, both ways."""
        sources, ends, starts = self._ways[temporal]
        reached = scores.copy()
        for _ in range(hops if len(ends) else 0):
            reached[ends] = np.maximum(
                reached[ends], np.maximum.reduceat(reached[sources] * DECAY, starts)
            )

        return reached

    def expand_as_published(
        self, seeds: Sequence[tuple[int, float]], hops: int, *, temporal: bool
    ) -> dict[int, float]:
        """Artifacts that the seeds reach, as in the published search: the first visit counts."""
        neighbours = self._neighbours(temporal)
        reached = _spread(dict(seeds), neighbours, hops)
        if hops == 1:
            return reached

        # With more than one hop, the published search starts again from everything that the first
        # one found. So it reaches twice as far, and a seed that is met on the way keeps a
        # neighbour's score.
        again: dict[int, float] = {}
        for seed, score in reached.items():
            again.setdefault(seed, score)
            for node, hop in _distances(seed, neighbours, hops):
                again.setdefault(node, score * DECAY**hop)

        return again

    def _neighbours(self, temporal: bool) -> dict[int, list[int]]:
        """By node: nodes it refers to, that refer to it, that it caused, that caused it."""
        sides: dict[int, tuple[list[int], ...]] = defaultdict(lambda: ([], [], [], []))
        for source, target, kind in self._edges(temporal):
            # The published graph stores each `caused_by` edge a second time, turned round, as
            # `leads_to`, and visits that list first.
            forward, backward = (0, 1) if kind == REFERENCES else (3, 2)
            sides[source][forward].append(target)
            sides[target][backward].append(source)

        neighbours = {}
        for node, lists in sides.items():
            # The first mention of a neighbour decides its rank: the published search is in order.
            neighbours[node] = list(dict.fromkeys(chain.from_iterable(lists)))

        return neighbours


def _spread(
    seeds: dict[int, float], neighbours: dict[int, list[int]], hops: int
) -> dict[int, float]:
    """Breadth first from all seeds at once: a neighbour has its parent's score times 0.8^hop."""
    reached = dict(seeds)
    border = list(seeds)
    for hop in range(1, hops + 1):
        following = []
        for parent in border:
            for node in neighbours.get(parent, ()):
                if node not in reached:
                    # The published loop multiplies a score that has decayed already: three hops
                    # leave 0.8, 0.8^3 and 0.8^6 of it.
                    reached[node] = reached[parent] * DECAY**hop
                    following.append(node)

        border = following

    return reached


def _distances(seed: int, neighbours: dict[int, list[int]], hops: int) -> Iterable[tuple[int, int]]:
    """The nodes within `hops` of a seed, nearest first, with their distances."""
    seen = {seed}
    border = [seed]
    for hop in range(1, hops + 1):
        following = []
        for parent in border:
            for node in neighbours.get(parent, ()):
                if node not in seen:
                    seen.add(node)
                    following.append(node)
                    yield node, hop

        border = following
