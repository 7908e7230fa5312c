"""Means that know what they are made of. Nothing measured is `None`, never 0."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from math import sqrt
from typing import NamedTuple

from memeval.metrics.student import two_sided_quantile

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean with its cluster-robust error."""

    mean: float
    se: float
    """Standard error, in the unit of the mean."""
    low: float
    """Lower end of the 95 % interval, not below 0."""
    high: float
    """Upper end of the 95 % interval, not above 1."""


def mean(values: Iterable[float | None]) -> float | None:
    """Mean over the scored values; None where nothing is scored."""
    scored = [value for value in values if value is not None]
    return sum(scored) / len(scored) if scored else None


def sample_std(values: Iterable[float | None]) -> float | None:
    """Sample standard deviation (n - 1) of the scored values; None for fewer than two."""
    scored = [value for value in values if value is not None]
    if len(scored) < 2:
        return None

    centre = sum(scored) / len(scored)
    return sqrt(sum((value - centre) ** 2 for value in scored) / (len(scored) - 1))


def clustered_interval(
    values: Sequence[float | None], clusters: Sequence[Hashable]
) -> Interval | None:
    """95 % interval of a mean of scores in [0, 1] whose values are independent between clusters
    only.

    var = G/(G-1) · Σ_g (Σ_{i in g} (x_i - mean))² / N² (CR1; Liang & Zeger, 1986); Student's t with
    G-1 degrees of freedom; clipped to [0, 1]. Unscored values are left out. None where fewer than
    two clusters have a scored value.
    """
    scored = [
        (value, cluster)
        for value, cluster in zip(values, clusters, strict=True)
        if value is not None
    ]
    centre = mean(value for value, _ in scored)
    residuals: dict[Hashable, float] = defaultdict(float)
    for value, cluster in scored:
        residuals[cluster] += value - (centre or 0.0)

    groups = len(residuals)
    if centre is None or groups < 2:
        return None

    se = sqrt(groups / (groups - 1) * sum(residual**2 for residual in residuals.values())) / len(
        scored
    )
    reach = two_sided_quantile(groups - 1, CONFIDENCE) * se
    return Interval(mean=centre, se=se, low=max(centre - reach, 0.0), high=min(centre + reach, 1.0))


def design_effect(values: Sequence[float | None], clusters: Sequence[Hashable]) -> float | None:
    """How many times the variance of the mean exceeds that of independent values, s²/N (Kish,
    1965). None where either is undefined.
    """
    interval, std = clustered_interval(values, clusters), sample_std(values)
    n = sum(value is not None for value in values)
    return interval.se**2 / (std**2 / n) if interval and std else None


def bounds(values: Sequence[float | None]) -> tuple[float, float] | None:
    """Worst and best case of a mean: unscored values counted as 0, and as 1. None for no values."""
    if not values:
        return None

    total, unscored = (
        sum(value for value in values if value is not None),
        sum(value is None for value in values),
    )
    return total / len(values), (total + unscored) / len(values)
