"""Many comparisons: false discovery rate, and letters for runs that can't be told apart."""

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
    groups = [frozenset(range(count))]
    for first, second in different:
        split: dict[frozenset[int], None] = {}
        for group in groups:
            if first in group and second in group:
                split |= dict.fromkeys((group - {first}, group - {second}))
            else:
                split[group] = None

        groups = [group for group in split if not _is_within(group, split)]

    return letters_by_item(count, groups)


def letters_by_item(count: int, groups: Iterable[frozenset[int]]) -> list[str]:
    """The letters of `count` items; each group has one letter."""
    letters = [""] * count
    for index, group in enumerate(sorted(groups, key=sorted)):
        for item in group:
            letters[item] += _letter(index)

    return letters


def _is_within(group: frozenset[int], others: Iterable[frozenset[int]]) -> bool:
    return any(group < other for other in others)


def _letter(index: int) -> str:
    """a … z, then A … Z, then numbers in brackets."""
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if index < len(alphabet):
        return alphabet[index]

    return f"({index})"
