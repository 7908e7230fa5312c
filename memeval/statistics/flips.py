"""Tests that flip the signs of whole clusters.

If two cells were equally good, the difference that a conversation shows could as well have the
other sign. The p is the share of all ways to set the signs under which the total is at least as far
from 0 as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import ndarray

    Matrix = ndarray[Any, Any]

EXACT_CLUSTERS = 16
"""Up to this number of clusters all 2^G sign vectors are counted."""
DRAWS = 9_999
SEED = 20_260_101
"""Of the draws, so that a p is the same each time."""
_BATCH = 2_048
"""Sign vectors at a time, which bounds the memory."""
_ROUNDING = 1e-9
"""Sums that differ by this share of the largest possible sum are equal."""


def flip_p(sums: Sequence[float]) -> float:
    """p of the two-sided flip test of one difference; `sums` are Σ d_i of each cluster.

    T = |Σ_g S_g|; p = share of the sign vectors e with |Σ_g e_g S_g| >= T. Exact up to 16 clusters;
    above, (b + 1)/(B + 1) from 9,999 seeded draws. The smallest p that G clusters can give is
    2/2^G.

    Source: Fisher, The Design of Experiments (1935), section 21; for clusters: Canay, Romano &
    Shaikh, Econometrica 85 (2017). The form with draws: Phipson & Smyth, SAGMB 9 (2010).
    """
    return flip_ps([sums])[0]


def flip_ps(comparisons: Sequence[Sequence[float]]) -> list[float]:
    """`flip_p` of several comparisons, which get the same flips.

    Each comparison has a sum for each cluster, in one order; 0 where it has no values.
    """
    return _count_flips(comparisons)[0]


def max_t_ps(comparisons: Sequence[Sequence[float]]) -> list[float]:
    """Adjusted p of several comparisons: the step-down max-T of Westfall & Young.

    The comparisons are ordered by T = |Σ_g S_g|, the largest first. The p of each is the share of
    the flips under which the largest |Σ_g e_g S_g| of it and of all behind it is at least its T; no
    p is below that of the comparison before it. The same flips for all comparisons keep their
    correlation, so that ten conversations can show something even among 45 pairs, where Holm's
    factor of 45 could not.

    Source: Westfall & Young, Resampling-Based Multiple Testing (1993), algorithm 2.8; Romano &
    Wolf, JASA 100 (2005).
    """
    return _count_flips(comparisons)[1]


def flip_and_max_t_ps(comparisons: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """`flip_ps` and `max_t_ps` of the same comparisons, by one pass over the flips."""
    return _count_flips(comparisons)


def _count_flips(comparisons: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    if not comparisons:
        return [], []

    import numpy as np

    sums = np.array(comparisons, dtype=float)
    groups = sums.shape[1]
    # Stable: equal differences keep their order, and so their adjusted p, on every machine.
    order = np.argsort(-np.abs(sums.sum(axis=1)), kind="stable")
    sums = sums[order]
    # A tie is a tie also where averages of repeats leave rounding behind.
    observed = np.abs(sums.sum(axis=1)) - _ROUNDING * np.abs(sums).sum(axis=1)

    own = np.zeros(len(sums))
    with_rest = np.zeros(len(sums))
    total = 0
    for signs in _sign_vectors(groups):
        flipped = np.abs(signs @ sums.T)
        largest_of_rest = np.maximum.accumulate(flipped[:, ::-1], axis=1)[:, ::-1]
        own += (flipped >= observed).sum(axis=0)
        with_rest += (largest_of_rest >= observed).sum(axis=0)
        total += len(signs)

    if groups > EXACT_CLUSTERS:  # the data as they are count as one more draw
        own, with_rest, total = own + 1, with_rest + 1, total + 1

    adjusted = np.maximum.accumulate(with_rest / total)
    own_ps, adjusted_ps = np.empty(len(sums)), np.empty(len(sums))
    own_ps[order], adjusted_ps[order] = own / total, adjusted

    return own_ps.tolist(), adjusted_ps.tolist()


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
            batch = numbers[start : start + _BATCH, None]
            yield 1.0 - 2.0 * ((batch >> np.arange(groups)) & 1)

        return

    generator = np.random.default_rng(SEED)
    for start in range(0, DRAWS, _BATCH):
        size = (min(_BATCH, DRAWS - start), groups)
        yield 1.0 - 2.0 * generator.integers(0, 2, size=size, dtype=np.int8)
