"""Groups values by key, and finds repeated names."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def group(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, in order."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)

    return groups


def repeated(names: Iterable[str]) -> list[tuple[str, int]]:
    """The names that occur more than once, with their counts."""
    return [(name, count) for name, count in Counter(names).items() if count > 1]
