"""Interval and p of differences, by flipping the signs of whole conversations and counting."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice, product
from math import inf

from memeval.witness.share import dot

MAX_COUNTED = 16
"""Up to this many conversations, every vector of signs is counted; beyond it, 9,999 are drawn."""
DRAWS, SEED, AT_ONCE = 9_999, 20_260_101, 2_048
_TIE = 1e-9


def flip_test(
    sums: Sequence[float], sizes: Sequence[float]
) -> tuple[float, float | None, float | None]:
    """p and the ends of the 95 % interval; the ends are None for fewer than six conversations."""
    total, count = sum(sums), sum(sizes)
    least = abs(total) - _TIE * sum(map(abs, sums))
    # The observed data count as one of the draws.
    observed = int(len(sums) > MAX_COUNTED)
    reached, lows, highs = observed, [-inf] * observed, [inf] * observed
    for signs in sign_vectors(len(sums)):
        a, b = dot(signs, sums), dot(signs, sizes)
        reaches = abs(a) >= least
        reached += reaches
        low, high = -inf, inf
        if abs(sum(signs)) < len(sums):
            low, high = sorted([(total - a) / (count - b), (total + a) / (count + b)])

        # If the flip is a tie, the interval must contain 0, regardless of rounding.
        if reaches:
            low, high = min(low, 0.0), max(high, 0.0)

        lows.append(low)
        highs.append(high)

    p, k = reached / len(lows), len(lows) // 20
    if k == 0:
        return p, None, None

    return p, sorted(lows)[k], sorted(highs, reverse=True)[k]


def adjusted_ps(sums: Sequence[dict[str, float]]) -> list[float]:
    """Step-down max-T: p of each comparison, adjusted over all, with the same flips for all."""
    cases = list(dict.fromkeys(chain.from_iterable(sums)))
    rows, totals, least = [], [], []
    for run_sums in sums:
        row = [run_sums.get(case, 0.0) for case in cases]
        total = abs(sum(row))
        rows.append(row)
        totals.append(total)
        least.append(total - _TIE * sum(map(abs, row)))

    order = sorted(range(len(rows)), key=totals.__getitem__, reverse=True)
    count = int(len(cases) > MAX_COUNTED)
    reached = [count] * len(rows)
    for signs in sign_vectors(len(cases)):
        count += 1
        largest = 0.0
        # Starting with the last: each is compared with the maximum of itself and of those after it.
        for number in reversed(order):
            largest = max(largest, abs(dot(signs, rows[number])))
            reached[number] += largest >= least[number]

    ps, smallest = [0.0] * len(rows), 0.0
    for number in order:
        smallest = max(smallest, reached[number] / count)
        ps[number] = smallest

    return ps


def sign_vectors(groups: int) -> Iterator[tuple[int, ...]]:
    """All vectors of signs, without opposite ones; for many groups, random draws."""
    if groups <= MAX_COUNTED:
        # The vectors of the second half are the opposites of those of the first.
        yield from islice(product((1, -1), repeat=groups), max(2**groups // 2, 1))
        return

    import numpy as np

    generator = np.random.default_rng(SEED)
    for start in range(0, DRAWS, AT_ONCE):
        size = (min(AT_ONCE, DRAWS - start), groups)
        bits = generator.integers(0, 2, size=size, dtype=np.int8)
        yield from map(tuple, (1 - 2 * bits).tolist())
