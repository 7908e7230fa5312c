"""How artifacts are connected: a graph built without a model, from their vectors, types, people and
dates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from memeval.llm.extractive.words import STOP_WORDS, stem
from memeval.retrieval.bm25 import terms
from memeval.systems.cogcanvas.artifacts import Artifact
from memeval.systems.cogcanvas.dates import day_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memeval.embedding.contract import Vectors

    Places = NDArray[np.intp]
    Scores = NDArray[np.float64]

CAUSES = {"todo": "decision", "insight": "key_fact", "decision": "key_fact"}
"""What an artifact of a type comes from: an earlier one of another type."""
LIKENESS_OF_CAUSES = 0.5
"""Share of the threshold of references that a cause must reach; its type is evidence already."""
MOST_LINKS = 3
"""Links of one kind that an artifact has at most, to those most alike."""
COMMON = 0.02
"""Terms that more than this share of the artifacts hold link no events."""
DECAY = 0.8
"""What is left of a score one hop further out."""


class Canvas:
    """The artifacts as nodes of a networkx graph, by position.

    Each edge has its `kind`: references, causes, person or temporal.
    """

    def __init__(self, artifacts: Sequence[Artifact], vectors: Vectors, threshold: float) -> None:
        """`threshold` is the least cosine of two artifacts of which one refers to the other."""
        import networkx as nx  # type: ignore[import-untyped]

        self.graph: Any = nx.MultiDiGraph()
        self.graph.add_nodes_from(range(len(artifacts)))
        if artifacts:
            alike = vectors @ vectors.T
            # Rows are the later artifacts, columns the earlier ones.
            before = np.tril(alike, k=-1)
            self._link("references", _best(before, before >= threshold))
            self._link(
                "causes",
                _best(before, _caused(artifacts) & (before >= threshold * LIKENESS_OF_CAUSES)),
            )
            self._link("person", _best(alike, _about_the_same_person(artifacts)))
            self._link("temporal", _next_events(artifacts))

        self._ways = {temporal: self._directed(temporal) for temporal in (True, False)}

    def _link(self, kind: str, pairs: Iterable[tuple[int, int]]) -> None:
        self.graph.add_edges_from((source, target, {"kind": kind}) for source, target in pairs)

    def _directed(self, temporal: bool) -> tuple[Places, Places, Places]:
        """Each edge both ways, sorted by where it leads.

        Returns where each comes from, the distinct ends, and where the edges of each end start.
        """
        edges = {
            (source, target)
            for source, target, kind in self.graph.edges(data="kind")
            if temporal or kind != "temporal"
        }
        ways = np.array(
            sorted({(target, source) for source, target in edges} | edges), dtype=np.intp
        ).reshape(-1, 2)
        ends, starts = np.unique(ways[:, 0], return_index=True)
        return ways[:, 1], ends, starts

    def expand(self, scores: Scores, hops: int, *, temporal: bool) -> Scores:
        """The best score that reaches each artifact within `hops`, its own included.

        Another artifact's score is multiplied by 0.8 per hop, and edges count both ways.
        """
        sources, ends, starts = self._ways[temporal]
        reached = scores.copy()
        for _ in range(hops if len(ends) else 0):
            reached[ends] = np.maximum(
                reached[ends], np.maximum.reduceat(reached[sources] * DECAY, starts)
            )

        return reached


def _best(alike: NDArray[np.float32], allowed: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """For each row, the allowed columns that are most alike."""
    pairs = []
    for row in np.flatnonzero(allowed.any(axis=1)):
        columns = np.flatnonzero(allowed[row])
        order = np.argsort(-alike[row, columns], kind="stable")[:MOST_LINKS]
        pairs += [(int(row), int(columns[place])) for place in order]

    return pairs


def _caused(artifacts: Sequence[Artifact]) -> NDArray[np.bool_]:
    kinds = np.array([artifact.kind for artifact in artifacts])
    causes = np.array([CAUSES.get(artifact.kind, "") for artifact in artifacts])
    result: NDArray[np.bool_] = causes[:, None] == kinds[None, :]
    return result


def _about_the_same_person(artifacts: Sequence[Artifact]) -> NDArray[np.bool_]:
    """Events in rows, what is said of a person in columns.

    True where the event is the person's, or names them.
    """
    people = [{*artifact.people, artifact.speaker} - {""} for artifact in artifacts]
    allowed = np.zeros((len(artifacts), len(artifacts)), dtype=bool)
    about_people = [
        number
        for number, artifact in enumerate(artifacts)
        if artifact.kind in ("person_attribute", "relationship")
    ]
    for number, artifact in enumerate(artifacts):
        if artifact.kind == "event":
            shared = [other for other in about_people if people[number] & people[other]]
            allowed[number, shared] = True

    return allowed


def _next_events(artifacts: Sequence[Artifact]) -> list[tuple[int, int]]:
    """Each event and the next one in time that shares something rare with it.

    That is a person who is not a speaker, or a term that few artifacts hold.
    """
    speakers = {artifact.speaker for artifact in artifacts}
    held_terms = [set(terms(artifact.search_text)) - STOP_WORDS for artifact in artifacts]
    stems = {term: stem(term) for term in set[str]().union(*held_terms)}
    words = [{stems[term] for term in held} for held in held_terms]
    frequency = Counter(word for held in words for word in held)
    rare = {
        word for word, count in frequency.items() if 1 < count <= max(2, COMMON * len(artifacts))
    }
    days = {
        number: day_of(artifact.dates, artifact.time)
        for number, artifact in enumerate(artifacts)
        if artifact.kind == "event"
    }
    order = sorted(days, key=lambda number: (days[number] or date.max, number))
    last: dict[str, int] = {}
    pairs: dict[tuple[int, int], None] = {}
    for number in order:
        for tie in sorted((words[number] & rare) | ({*artifacts[number].people} - speakers)):
            if tie in last:
                pairs[last[tie], number] = None

            last[tie] = number

    return list(pairs)
