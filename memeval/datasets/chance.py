"""Seeded choice, the same on every machine."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from random import Random
from typing import TypeVar

T = TypeVar("T")


def seeded_random(*parts: object) -> Random:
    """A random number generator, seeded with the parts.

    Only its `random()` is used, whose sequence is the same in every version of Python and on every
    machine.
    """
    text = "/".join(map(str, parts))
    return Random(int.from_bytes(sha256(text.encode()).digest()[:8]))


def pick(rng: Random, items: Sequence[T]) -> T:
    return items[int(rng.random() * len(items))]


def draw(rng: Random, items: Iterable[T], count: int | None = None) -> list[T]:
    """`count` of the items, or all, in random order."""
    # Not `shuffle` or `sample`, which may draw differently in another version of Python.
    left = list(items)
    size = len(left) if count is None else min(count, len(left))
    for position in range(size):
        other = position + int(rng.random() * (len(left) - position))
        left[position], left[other] = left[other], left[position]

    return left[:size]
