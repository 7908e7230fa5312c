"""Shares: Wilson's interval, also of correlated questions, and McNemar's test."""

from math import comb, sqrt

Z95 = 1.959963984540054
"""The normal distribution's .975 quantile."""


def wilson_interval(successes: int, count: int) -> tuple[float, float]:
    """95 % interval of a share of independent trials.

    Raises `ValueError` for no trials. Source: Wilson, JASA 22 (1927).
    """
    if count < 1 or not 0 <= successes <= count:
        raise ValueError(f"{successes} of {count} is not a share")

    return wilson_ends(successes / count, count, Z95)


def wilson_ends(share: float, count: float, factor: float) -> tuple[float, float]:
    """Ends of Wilson's interval of a share of `count` trials, which need not be a whole number.

    (p + z²/2n ± z·sqrt(p(1 - p)/n + z²/4n²)) / (1 + z²/n). `factor` is z, or a quantile of t
    instead. Unlike p ± z·SE it stays within [0, 1] and has a width also for 0 of n.
    """
    square = factor**2
    centre = share + square / (2 * count)
    reach = factor * sqrt(share * (1 - share) / count + square / (4 * count**2))
    scale = 1 + square / count
    low, high = max((centre - reach) / scale, 0.0), min((centre + reach) / scale, 1.0)

    # At 0 and at 1 the end is the share itself, up to rounding.
    return min(low, share), max(high, share)


def mcnemar_p(first_alone: int, second_alone: int) -> float:
    """Exact two-sided p of McNemar's test: are both cells right alone equally often?

    p = min(1, 2 · P(X <= min(b, c))) with X binomial(b + c, 1/2). It assumes independent questions,
    which those of one conversation are not: it is a description, not the test.

    Source: McNemar, Psychometrika 12 (1947); the exact form is the sign test.
    """
    total, fewer = first_alone + second_alone, min(first_alone, second_alone)
    tail = sum(comb(total, count) for count in range(fewer + 1))

    # Whole numbers until the end: 2**total may be too large for a float.
    return min(1.0, 2 * tail / (1 << total))
