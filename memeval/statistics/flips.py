"""Tests that flip the signs of whole clusters, and the intervals that they imply.

If two cells were equally good, the difference in a conversation could as well have the other sign.
The p is the share of all ways to set the signs under which the total is at least as far from 0 as
the observed one; the interval contains the differences that the same flips do not reject.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from numpy import ndarray

    Matrix = ndarray[Any, Any]

EXACT_CLUSTERS = 16
"""Up to this number of clusters all 2^G sign vectors are counted."""
DRAWS = 9_999
SEED = 20_260_101
"""Seed of the draws: a p is the same each time."""
_BATCH = 2_048
"""Sign vectors per batch, which limits the memory."""
_MAX_SIGNS = 2**18
"""Signs per batch of draws, which also keeps a product with them in the processor's cache."""
_MAX_FLIPPED = 2**21
"""Sums of comparisons per batch, for the same reason."""
_MAX_KEPT = 2**12
"""Clusters up to which draws are kept, which take 5 MB."""
_ROUNDING = 1e-9
"""Sums that differ by this share of the largest possible sum are equal."""


class FlipTest(Struct, frozen=True):
    """Result of the flip test of one difference."""

    p: float
    """Two-sided p; 1 for a single cluster."""
    low: float | None
    high: float | None
    """95 % interval of the mean; None for fewer than six clusters. 0 is in it exactly if p is
    above .05.
    """


def flip_test(sums: Sequence[float], sizes: Sequence[float]) -> FlipTest:
    """p and interval of one difference; `sums` has Σ d_i of each cluster, `sizes` its values.

    T = |Σ_g S_g|; p = share of the sign vectors e with |Σ_g e_g S_g| >= T. Exact up to 16 clusters;
    above, (b + 1)/(B + 1) from 9,999 seeded draws. The smallest possible p of G clusters is 2/2^G.

    With D = Σ S, N = Σ n, A = Σ e S and B = Σ e n, a vector does not reject the differences between
    (D - A)/(N - B) and (D + A)/(N + B); the data's own signs reject none. Of M vectors and k = ⌊.05
    M⌋ the interval goes from the (k + 1)-th smallest lower end to the (k + 1)-th largest upper one,
    so that it contains what more than .05 of the vectors do not reject.

    Source: Fisher, The Design of Experiments (1935), section 21; for clusters: Canay, Romano &
    Shaikh, Econometrica 85 (2017). The form with draws: Phipson & Smyth, SAGMB 9 (2010).
    """
    import numpy as np

    totals, counts = np.array(sums, dtype=float), np.array(sizes, dtype=float)
    total, count = totals.sum(), counts.sum()
    rounding = _ROUNDING * np.abs(totals).sum()
    lows, highs, passed = [], [], 0

    for signs in _sign_vectors(len(totals)):
        flipped, sized = signs @ totals, signs @ counts
        reaches = np.abs(flipped) >= abs(total) - rounding
        # The data's own signs, and the opposite signs, reject no difference.
        is_own = np.abs(signs.sum(axis=1)) == len(totals)
        gaps = np.stack([total - flipped, total + flipped])
        # A tie must also be a tie for the interval, even if rounding left its end next to 0.
        gaps[np.abs(gaps) <= rounding] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = gaps / np.stack([count - sized, count + sized])

        low, high = ends.min(axis=0), ends.max(axis=0)
        low[is_own], high[is_own] = -np.inf, np.inf
        lows.append(low)
        highs.append(high)
        passed += int(reaches.sum())

    if len(totals) > EXACT_CLUSTERS:  # the observed data count as one more draw
        lows.append(np.array([-np.inf]))
        highs.append(np.array([np.inf]))
        passed += 1

    return _read_test(passed, np.concatenate(lows), np.concatenate(highs))


def _read_test(passed: int, lows: Matrix, highs: Matrix) -> FlipTest:
    """p from the vectors at least as extreme as the data; the interval from their ends."""
    import numpy as np

    vectors = len(lows)
    p, outside = passed / vectors, vectors // 20
    if outside == 0:
        return FlipTest(p, None, None)

    low = float(np.partition(lows, outside)[outside])
    high = float(np.partition(highs, vectors - outside - 1)[vectors - outside - 1])
    return FlipTest(p, low, high)


def max_t_ps(comparisons: Sequence[Sequence[float]]) -> list[float]:
    """Adjusted p of several comparisons: the step-down max-T of Westfall & Young.

    The comparisons are ordered by T = |Σ_g S_g|, the largest first. The p of each is the share of
    the flips under which the largest |Σ_g e_g S_g| of it and of all after it is at least its T; no
    p is below that of the comparison before it. The same flips for all comparisons keep their
    correlation, so that ten conversations can show a difference even among 45 pairs, where Holm's
    factor of 45 could not.

    Source: Westfall & Young, Resampling-Based Multiple Testing (1993), algorithm 2.8; Romano &
    Wolf, JASA 100 (2005).
    """
    if len(comparisons) == 0:
        return []

    import numpy as np

    sums = np.array(comparisons, dtype=float)
    groups = sums.shape[1]
    # Stable: equal differences keep their order, and so their adjusted p, on every machine.
    order = np.argsort(-np.abs(sums.sum(axis=1)), kind="stable")
    sums = sums[order]
    # A tie must be a tie even if averages of repeats leave rounding errors.
    observed = np.abs(sums.sum(axis=1)) - _ROUNDING * np.abs(sums).sum(axis=1)

    with_rest = np.zeros(len(sums))
    total = 0
    at_once = max(1, _MAX_FLIPPED // len(sums))
    for batch in _sign_vectors(groups):
        total += len(batch)
        for start in range(0, len(batch), at_once):
            flipped = np.abs(batch[start : start + at_once] @ sums.T)
            largest_of_rest = np.maximum.accumulate(flipped[:, ::-1], axis=1)[:, ::-1]
            with_rest += (largest_of_rest >= observed).sum(axis=0)

    if groups > EXACT_CLUSTERS:  # the observed data count as one more draw
        with_rest, total = with_rest + 1, total + 1

    adjusted = np.empty(len(sums))
    adjusted[order] = np.maximum.accumulate(with_rest / total)
    ps: list[float] = adjusted.tolist()
    return ps


def count_vectors(groups: int) -> int:
    """The number of evaluated sign vectors."""
    return 2 ** max(groups - 1, 0) if groups <= EXACT_CLUSTERS else DRAWS


def _sign_vectors(groups: int) -> Iterator[Matrix]:
    """Sign vectors in batches: all of them up to `EXACT_CLUSTERS`, else draws.

    A vector and its opposite give the same |Σ|, so of all vectors those whose last sign is +1 are
    enough.
    """
    import numpy as np

    if groups <= EXACT_CLUSTERS:
        # The bits of a number are the signs; its highest bit, of the last cluster, is always 0.
        numbers = np.arange(2 ** max(groups - 1, 0))
        for start in range(0, len(numbers), _BATCH):
            rows = numbers[start : start + _BATCH, None]
            yield 1.0 - 2.0 * ((rows >> np.arange(groups)) & 1)

        return

    for bits in _kept_bits(groups) if groups <= _MAX_KEPT else _drawn_bits(groups):
        yield 1.0 - 2.0 * np.unpackbits(bits, axis=1, count=groups)


@lru_cache(maxsize=16)
def _kept_bits(groups: int) -> list[Matrix]:
    """The drawn signs, kept, as drawing them takes most of a test's time."""
    return list(_drawn_bits(groups))


def _drawn_bits(groups: int) -> Iterator[Matrix]:
    """The drawn signs in batches, eight to a byte."""
    import numpy as np

    generator = np.random.default_rng(SEED)
    # A multiple of four vectors leaves no random bits over, so that the draws are always the same.
    most = max(4, min(_BATCH, _MAX_SIGNS // groups // 4 * 4))
    for start in range(0, DRAWS, most):
        size = (min(most, DRAWS - start), groups)
        yield np.packbits(generator.integers(0, 2, size=size, dtype=np.int8), axis=1)
