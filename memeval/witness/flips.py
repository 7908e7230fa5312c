"""Interval and p of differences, by flipping the signs of whole conversations and counting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

MOST_COUNTED = 16
"""Up to this many conversations, every vector of signs is counted; beyond it, 9,999 are drawn."""
DRAWS, SEED, AT_ONCE = 9_999, 20_260_101, 2_048
_TIE = 1e-9


def flip_test(
    sums: Sequence[float], sizes: Sequence[float]
) -> tuple[float, float | None, float | None]:
    """p and the ends of the 95 % interval; the ends are None for fewer than six conversations."""
    total, count = sum(sums), sum(sizes)
    least = abs(total) - _TIE * sum(map(abs, sums))
    reached, lows, highs = 0, [], []
    for signs in sign_vectors(len(sums)):
        a = sum(sign * own for sign, own in zip(signs, sums, strict=True))
        b = sum(sign * own for sign, own in zip(signs, sizes, strict=True))
        reaches = abs(a) >= least
        reached += reaches
        if abs(sum(signs)) == len(sums):
            lows.append(-inf)
            highs.append(inf)
            continue

        ends = sorted([(total - a) / (count - b), (total + a) / (count + b)])
        # If the flip is a tie, the interval must contain 0, whatever the rounding.
        lows.append(min(ends[0], 0.0) if reaches and total >= 0 else ends[0])
        highs.append(max(ends[1], 0.0) if reaches and total <= 0 else ends[1])

    if len(sums) > MOST_COUNTED:
        reached += 1
        lows.append(-inf)
        highs.append(inf)

    p, k = reached / len(lows), len(lows) // 20
    if k == 0:
        return p, None, None

    return p, sorted(lows)[k], sorted(highs, reverse=True)[k]


def adjusted_ps(sums: Sequence[dict[str, float]]) -> list[float]:
    """Step-down max-T: p of each comparison, adjusted over all, with the same flips for all."""
    cases = list(dict.fromkeys(case for own in sums for case in own))
    rows = [[own.get(case, 0.0) for case in cases] for own in sums]
    order = sorted(range(len(rows)), key=lambda number: -abs(sum(rows[number])))
    rows = [rows[number] for number in order]
    least = [abs(sum(row)) - _TIE * sum(map(abs, row)) for row in rows]
    reached, count = [0] * len(rows), 0
    for signs in sign_vectors(len(cases)):
        count += 1
        largest = 0.0
        # Starting with the last: each is compared with the maximum of itself and of those after it.
        for number in range(len(rows) - 1, -1, -1):
            own = abs(sum(sign * one for sign, one in zip(signs, rows[number], strict=True)))
            largest = max(largest, own)
            reached[number] += largest >= least[number]

    if len(cases) > MOST_COUNTED:
        count, reached = count + 1, [own + 1 for own in reached]

    ps, smallest = [0.0] * len(rows), 0.0
    for place, number in enumerate(order):
        smallest = max(smallest, reached[place] / count)
        ps[number] = smallest

    return ps


def sign_vectors(groups: int) -> Iterator[tuple[int, ...]]:
    """All vectors of signs, without opposite ones; for many groups, random draws."""
    if groups <= MOST_COUNTED:
        for number in range(2 ** max(groups - 1, 0)):
            yield tuple(-1 if number >> place & 1 else 1 for place in range(groups))

        return

    import numpy as np

    generator = np.random.default_rng(SEED)
    for start in range(0, DRAWS, AT_ONCE):
        size = (min(AT_ONCE, DRAWS - start), groups)
        for bits in generator.integers(0, 2, size=size, dtype=np.int8):
            yield tuple(1 - 2 * int(bit) for bit in bits)
