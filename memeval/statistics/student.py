"""Student's t, for whole degrees of freedom, without the half second that importing scipy takes at
the end of every run.
"""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt

_HALVINGS = 80
"""More than the 53 bits that a double has: the last halvings change nothing."""


def quantile(freedom: int, probability: float) -> float:
    """The t with P(T <= t) = `probability`, for 0.5 <= `probability` < 1 and `freedom` >= 1.

    `quantile(9, 0.975)` is 2.262, the factor of a 95 % interval from ten conversations.
    """
    return two_sided_quantile(freedom, 2 * probability - 1)


@lru_cache(maxsize=1024)
def two_sided_quantile(freedom: int, confidence: float) -> float:
    """The t with P(|T| <= t) = `confidence`, by bisection, for `freedom` >= 1."""
    low, high = 0.0, 1.0
    # No bound holds for all: with one degree of freedom the quantiles grow without end.
    while within(high, freedom) < confidence:
        high *= 2

    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < confidence else (low, middle)

    return (low + high) / 2


def within(t: float, freedom: int) -> float:
    """P(|T| <= t).

    Source: Abramowitz & Stegun, 26.7.3 (odd degrees of freedom) and 26.7.4 (even ones).
    """
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0 if freedom == 1 else term
    for step in range(2 + odd, freedom - 1, 2):
        term *= (step - 1) / step * cos(angle) ** 2
        total += term

    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
