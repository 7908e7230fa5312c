"""Groups of OpsEval items that would leak answers to each other: repeated items, items that share a
solution, and twins in English and Chinese.

The files do not name twins: English rows come first, then Chinese ones in another order, and not
every row has a twin. Twins have the same right letters and equally many choices. Each is nearest to
the other (cosine of `NEAR` or more) by the words that translation keeps: those of Latin letters and
digits. A wrong pair does no harm: its items stay on one side.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import product

from memeval.datasets.opseval.items import OpsEvalItem

NEAR = 0.2
"""Minimum cosine of two twins' words, each weighted by the logarithm of its rarity among the
Chinese items.
"""
WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9./:_+-]*[A-Za-z0-9])?")


def groups(items: Sequence[OpsEvalItem]) -> list[list[int]]:
    """Positions of the items that belong together, in one list each; lists and members are in the
    order of the items.
    """
    # Imported late: most data sets do without the library.
    import networkx as nx  # type: ignore[import-untyped]

    graph = nx.Graph()
    graph.add_nodes_from(range(len(items)))
    graph.add_edges_from([*_repeats(items), *_twins(items)])
    return sorted(map(sorted, nx.connected_components(graph)))


def _repeats(items: Sequence[OpsEvalItem]) -> Iterator[tuple[int, int]]:
    """Pairs with the same question or the same solution."""
    first: dict[Hashable, int] = {}
    for position, item in enumerate(items):
        for part, text in (("question", item.question), ("solution", item.solution)):
            if text:
                key = (item.domain, part, " ".join(text.lower().split()))
                yield first.setdefault(key, position), position


def _twins(items: Sequence[OpsEvalItem]) -> Iterator[tuple[int, int]]:
    """Pairs of an English and a Chinese item that are taken as the same."""
    sides: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    words: dict[int, frozenset[str]] = {}
    counts: Counter[str] = Counter()
    for position, item in enumerate(items):
        if item.choices and item.solution:
            english, chinese = sides[item.domain, item.right, len(item.choices)]
            text = " ".join((item.question, *item.choices, item.solution))
            words[position] = frozenset(WORD.findall(text.lower()))
            if item.language == "zh":
                chinese.append(position)
                counts.update(words[position])
            else:
                english.append(position)

    weights = {word: math.log(1 + counts.total() / count) for word, count in counts.items()}
    for english, chinese in sides.values():
        if not english or not chinese:
            continue

        near = {}
        for here, there in product(english, chinese):
            near[here, there] = _cosine(words[here], words[there], weights)

        for here in english:
            there = _nearest(chinese, [near[here, there] for there in chinese])
            back = _nearest(english, [near[here, there] for here in english])
            # Each must be the other's nearest, because one item may resemble many.
            if back == here and near[here, there] >= NEAR:
                yield here, there


def _nearest(positions: Sequence[int], cosines: Sequence[float]) -> int:
    """The position with the largest cosine; of equal cosines, the first in the data."""
    return min(zip(positions, cosines, strict=True), key=lambda pair: (-pair[1], pair[0]))[0]


def _cosine(one: frozenset[str], other: frozenset[str], weights: dict[str, float]) -> float:
    """Cosine of two sets of words, from the words that occur among the Chinese items."""

    def weight(words: frozenset[str]) -> float:
        # `fsum`, because a plain sum depends on the order of the set, which differs between
        # processes: of two equally near items, each would sometimes be the nearest.
        return math.fsum(weights.get(word, 0.0) for word in words)

    common = weight(one & other)
    if not common:
        return 0.0

    return common / math.sqrt(weight(one) * weight(other))
