"""How artifacts are connected: a graph built without a model, from their vectors, types and words.

The rules are those of the published system. A rule connects an artifact with artifacts of earlier
calls of the extraction; artifacts of one call are never connected.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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

    Mask = NDArray[np.bool_]
    Places = NDArray[np.intp]
    Scores = NDArray[np.float64]

REFERENCES = "references"
CAUSED_BY = "caused_by"
TEMPORAL_RULES = frozenset({"constraint", "event", "chain"})
"""The rules that `temporal_edges` switches."""
COMMON = 0.02
"""Terms that more than this share of the artifacts hold link no events of the chain."""
DECAY = 0.8
"""What is left of a score one hop further out."""
FUNCTION_WORDS = frozenset(
    "the and for are was were but with that this these those you your she her hers him his they "
    "them their our ours its who whom whose which what when where why how will would can could "
    "shall should may might must into onto than then".split()
)
"""Words that do not make two artifacts overlap."""
_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, slots=True)
class GraphRules:
    """The constants of the rules. A window is a number of calls of the extraction."""

    reference: float = 0.5
    """Least cosine of two artifacts without a common word of which one refers to the other."""
    overlap: float = 0.3
    """Least cosine of two artifacts with a common word, for references and causes."""
    causal: float = 0.45
    """Least cosine of a cause without a common word."""
    todo_window: int = 5
    """How far back a todo looks for its decision."""
    insight_window: int = 3
    """How far back an insight looks for its facts and decisions."""
    constraint_window: int = 2
    """How far back a decision looks for its facts and reminders."""
    constraint_links: int = 2
    """Facts and reminders of a decision at most, the latest ones."""
    constraint_overlap: bool = True
    """Whether a decision and its facts must have a common word."""
    event_window: int = 10
    """How far back a decision looks for events."""
    event_chain: bool = False
    """Whether each event is also linked to the next one in time that shares something rare."""


class Canvas:
    """The artifacts as nodes of a networkx graph, by position.

    Each edge leads from the newer artifact to the older one. It has its `kind`, references or
    caused_by, and the `rule` that made it.
    """

    def __init__(self, artifacts: Sequence[Artifact], vectors: Vectors, rules: GraphRules) -> None:
        import networkx as nx  # type: ignore[import-untyped]

        self.graph: Any = nx.MultiDiGraph()
        self.graph.add_nodes_from(range(len(artifacts)))
        if artifacts:
            alike = (vectors @ vectors.T).astype(np.float64)
            for kind, rule, pairs in _Pairs(artifacts, alike, rules).by_rule():
                self._link(kind=kind, rule=rule, pairs=pairs)

            if rules.event_chain:
                self._link(kind=REFERENCES, rule="chain", pairs=_next_events(artifacts))

        self._ways = {temporal: self._directed(temporal) for temporal in (True, False)}

    def _link(self, *, kind: str, rule: str, pairs: Iterable[tuple[int, int]]) -> None:
        self.graph.add_edges_from(
            (source, target, {"kind": kind, "rule": rule}) for source, target in pairs
        )

    def edges_by_rule(self) -> Counter[str]:
        """How many edges each rule made."""
        return Counter(rule for _, _, rule in self.graph.edges(data="rule"))

    def _directed(self, temporal: bool) -> tuple[Places, Places, Places]:
        """Each edge both ways, sorted by where it leads.

        Returns where each comes from, the distinct ends, and where the edges of each end start.
        """
        edges = {(source, target) for source, target, _ in self._edges(temporal)}
        ways = np.array(
            sorted({(target, source) for source, target in edges} | edges), dtype=np.intp
        ).reshape(-1, 2)
        ends, starts = np.unique(ways[:, 0], return_index=True)
        return ways[:, 1], ends, starts

    def _edges(self, temporal: bool) -> Iterable[tuple[int, int, str]]:
        """The edges that count, with their kinds."""
        for source, target, data in self.graph.edges(data=True):
            if temporal or data["rule"] not in TEMPORAL_RULES:
                yield source, target, data["kind"]

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

    def expand_as_published(
        self, seeds: Sequence[tuple[int, float]], hops: int, *, temporal: bool
    ) -> dict[int, float]:
        """What the seeds reach, in the order of the published search, with its scores.

        The first visit counts, even where another path would give more. With more than one hop,
        the search starts again from everything that the first one found. So it reaches twice as
        far, and a seed that is met on the way keeps a neighbour's score.
        """
        neighbours = self._neighbours(temporal)
        reached = _spread(dict(seeds), neighbours, hops)
        if hops == 1:
            return reached

        again: dict[int, float] = {}
        for seed, score in reached.items():
            again.setdefault(seed, score)
            for node, hop in _distances(seed, neighbours, hops):
                again.setdefault(node, score * DECAY**hop)

        return again

    def _neighbours(self, temporal: bool) -> dict[int, list[int]]:
        """By node: what it refers to, what refers to it, what it caused, what caused it."""
        sides: dict[int, tuple[list[int], ...]] = defaultdict(lambda: ([], [], [], []))
        for source, target, kind in self._edges(temporal):
            forward, backward = (0, 1) if kind == REFERENCES else (3, 2)
            sides[source][forward].append(target)
            sides[target][backward].append(source)

        return {
            node: list(dict.fromkeys(other for side in lists for other in side))
            for node, lists in sides.items()
        }


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


class _Pairs:
    """What the rules look at: newer artifacts in rows, older ones in columns."""

    def __init__(
        self, artifacts: Sequence[Artifact], alike: NDArray[np.float64], rules: GraphRules
    ) -> None:
        self.rules = rules
        self.alike = alike
        self.batches = np.array([artifact.batch for artifact in artifacts])
        self.kinds = np.array([artifact.kind for artifact in artifacts])
        self.overlap = _common_words(artifacts)
        self.distance = self.batches[:, None] - self.batches[None, :]

    def by_rule(self) -> Iterable[tuple[str, str, list[tuple[int, int]]]]:
        """The kind, the name and the pairs of each rule, in the published order."""
        rules, earlier = self.rules, self.distance > 0
        yield REFERENCES, "reference", _pairs(earlier & self._is_alike(rules.reference))

        todo = self._between("todo", ("decision",), rules.todo_window)
        yield CAUSED_BY, "todo", self._nearest(todo & self._is_alike(rules.causal))

        insight = self._between("insight", ("key_fact", "decision"), rules.insight_window)
        yield CAUSED_BY, "insight", _pairs(insight & self._is_alike(rules.causal))

        constraint = self._between("decision", ("key_fact", "reminder"), rules.constraint_window)
        if rules.constraint_overlap:
            constraint &= self.overlap

        yield CAUSED_BY, "constraint", self._latest(constraint)

        about_person = self.overlap | (self.alike >= rules.reference)
        for kind in ("event", "relationship"):
            person = self._between(kind, ("person_attribute",), None)
            rule = "person" if kind == "event" else "relationship"
            yield REFERENCES, rule, _pairs(person & about_person)

        event = self._between("decision", ("event",), rules.event_window)
        yield CAUSED_BY, "event", _pairs(event & self.overlap)

    def _is_alike(self, least: float) -> Mask:
        """Pairs of at least that cosine; of the lower one where they have a common word."""
        result: Mask = (self.alike >= least) | (self.overlap & (self.alike >= self.rules.overlap))
        return result

    def _between(self, kind: str, others: Sequence[str], window: int | None) -> Mask:
        """Artifacts of a kind with earlier ones of other kinds, at most `window` calls before."""
        near = self.distance > 0
        if window is not None:
            near &= self.distance <= window

        result: Mask = (self.kinds == kind)[:, None] & np.isin(self.kinds, others)[None, :] & near
        return result

    def _nearest(self, allowed: Mask) -> list[tuple[int, int]]:
        """For each row, the allowed column of the highest cosine."""
        best = np.where(allowed, self.alike, -np.inf).argmax(axis=1)
        return [(int(row), int(best[row])) for row in np.flatnonzero(allowed.any(axis=1))]

    def _latest(self, allowed: Mask) -> list[tuple[int, int]]:
        """For each row, the allowed columns of the latest calls, up to the limit."""
        pairs = []
        for row in np.flatnonzero(allowed.any(axis=1)):
            columns = np.flatnonzero(allowed[row])
            order = np.argsort(-self.batches[columns], kind="stable")
            latest = columns[order[: self.rules.constraint_links]]
            pairs += [(int(row), int(column)) for column in latest]

        return pairs


def _pairs(allowed: Mask) -> list[tuple[int, int]]:
    return [(int(row), int(column)) for row, column in np.argwhere(allowed)]


def content_words(text: str) -> set[str]:
    """The words of a text that may connect it: three letters or more, no function words."""
    return set(_WORD.findall(text.lower())) - FUNCTION_WORDS


def _common_words(artifacts: Sequence[Artifact]) -> Mask:
    """Whether the newer artifact's content or quote has a word of the older one's content."""
    holders: dict[str, list[int]] = defaultdict(list)
    for number, artifact in enumerate(artifacts):
        for word in content_words(artifact.content):
            holders[word].append(number)

    columns = {word: np.array(numbers) for word, numbers in holders.items()}
    common = np.zeros((len(artifacts), len(artifacts)), dtype=bool)
    for number, artifact in enumerate(artifacts):
        for word in content_words(f"{artifact.content} {artifact.quote}"):
            if word in columns:
                common[number, columns[word]] = True

    return common


def _next_events(artifacts: Sequence[Artifact]) -> list[tuple[int, int]]:
    """Each event and the next one in time that shares something rare with it.

    That is a person who is not a speaker, or a term that few artifacts hold.
    """
    speakers = {artifact.speaker for artifact in artifacts}
    held_terms = [set(terms(artifact.full_text)) - STOP_WORDS for artifact in artifacts]
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
