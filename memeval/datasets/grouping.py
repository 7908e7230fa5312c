"""Groups values by key."""

from __future__ import annotations

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
