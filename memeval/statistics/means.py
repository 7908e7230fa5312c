"""Means that know what they are made of. Nothing measured is `None`, never 0."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import sqrt
from typing import NamedTuple

from memeval.statistics.clusters import clustered_mean, weighted_mean


class Interval(NamedTuple):
    """A mean with its cluster-robust error."""

    mean: float
    se: float
    """Standard error, in the unit of the mean."""
    low: float
    """Lower end of the 95 % interval, not below 0."""
    high: float
    """Upper end of the 95 % interval, not above 1."""


def mean(values: Iterable[float | None], weights: Sequence[float] | None = None) -> float | None:
    """Mean over the scored values, weighted where they are of a sample; None for none scored."""
    if weights is None:
        scored = [value for value in values if value is not None]
        return sum(scored) / len(scored) if scored else None

    pairs = [
        (value, weight) for value, weight in zip(values, weights, strict=True) if value is not None
    ]
    return weighted_mean(*_columns(pairs)) if pairs else None


def sample_std(values: Iterable[float | None]) -> float | None:
    """Sample standard deviation (n - 1) of the scored values; None for fewer than two."""
    scored = [value for value in values if value is not None]
    if len(scored) < 2:
        return None

    centre = sum(scored) / len(scored)
    return sqrt(sum((value - centre) ** 2 for value in scored) / (len(scored) - 1))


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [value for value, _ in pairs], [weight for _, weight in pairs]


def clustered_interval(
    values: Sequence[float | None],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
) -> Interval | None:
    """95 % interval of a mean of scores in [0, 1] whose values are independent between clusters
    only.

    var = G/(G-1) · Σ_g (Σ_{i in g} (x_i - mean))² / N² (CR1; Liang & Zeger, 1986); Student's t with
    G-1 degrees of freedom; clipped to [0, 1]. Unscored values are left out. None where fewer than
    two clusters have a scored value. `weights` are those of a sample.
    """
    all_weights = [1.0] * len(values) if weights is None else weights
    scored = [
        (value, cluster, weight)
        for value, cluster, weight in zip(values, clusters, all_weights, strict=True)
        if value is not None
    ]
    own = clustered_mean(
        [value for value, _, _ in scored],
        [cluster for _, cluster, _ in scored],
        [weight for _, _, weight in scored],
    )
    if own is None or own.se is None:
        return None

    reach = own.half_width or 0.0
    return Interval(
        mean=own.mean,
        se=own.se,
        low=max(own.mean - reach, 0.0),
        high=min(own.mean + reach, 1.0),
    )


def design_effect(
    values: Sequence[float | None],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
) -> float | None:
    """How many times the variance of the mean exceeds that of independent values, s²/N (Kish,
    1965). None where either is undefined.
    """
    interval, std = clustered_interval(values, clusters, weights), sample_std(values)
    n = sum(value is not None for value in values)
    return interval.se**2 / (std**2 / n) if interval and std else None


def bounds(
    values: Sequence[float | None], weights: Sequence[float] | None = None
) -> tuple[float, float] | None:
    """Worst and best case of a mean: unscored values counted as 0, and as 1. None for no values."""
    if not values:
        return None

    worst = [0.0 if value is None else value for value in values]
    best = [1.0 if value is None else value for value in values]
    return weighted_mean(worst, weights), weighted_mean(best, weights)
