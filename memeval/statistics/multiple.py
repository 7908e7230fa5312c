"""Many comparisons: false discoveries, and letters for runs that can't be told apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """p adjusted so that at most a chosen share of the differences found is expected to be chance.

    Sorted upwards, p_(i) becomes min over j >= i of p_(j) · m/j, at most 1.

    Source: Benjamini & Hochberg, JRSS B 57 (1995).
    """
    adjusted = [0.0] * len(ps)
    smallest = 1.0
    order = sorted(range(len(ps)), key=lambda index: ps[index], reverse=True)
    # From the largest down, so that one pass keeps the minimum over all that follow it.
    for passed, index in enumerate(order):
        rank = len(ps) - passed
        smallest = min(smallest, ps[index] * len(ps) / rank)
        adjusted[index] = smallest

    return adjusted


def compact_letters(count: int, different: Iterable[tuple[int, int]]) -> list[str]:
    """Letters for `count` items in order: two share one iff they can't be told apart.

    `different` contains the pairs that can. One letter for all is the start; each pair that shares
    a letter splits it in two; a set within another one is dropped (insert and absorb).

    Source: Piepho, Journal of Computational and Graphical Statistics 13 (2004).
    """
    groups: list[frozenset[int]] = [frozenset(range(count))] if count else []
    for first, second in different:
        split: list[frozenset[int]] = []
        for group in groups:
            if first in group and second in group:
                split += [group - {first}, group - {second}]
            else:
                split.append(group)

        groups = _without_subsets(split)

    return letters_by_item(count, groups)


def letters_by_item(count: int, groups: Iterable[frozenset[int]]) -> list[str]:
    """The letters of `count` items; each group has one letter."""
    ordered = sorted(groups, key=sorted)
    return [_letters_of(item, ordered) for item in range(count)]


def _letters_of(item: int, groups: Sequence[frozenset[int]]) -> str:
    return "".join(_letter(index) for index, group in enumerate(groups) if item in group)


def _without_subsets(groups: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    unique = list(dict.fromkeys(groups))
    within = {group for group in unique for other in unique if group < other}
    return [group for group in unique if group not in within]


def _letter(index: int) -> str:
    """a … z, then A … Z, then numbers in brackets."""
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return alphabet[index] if index < len(alphabet) else f"({index})"
