"""Means of values some of which may be missing. Without any value the result is `None`, never 0."""

from collections.abc import Hashable, Iterable, Sequence
from math import sqrt

from memeval.statistics.clusters import (
    ClusteredMean,
    clustered_mean,
    clustered_se,
    scales_of,
    weighted_mean,
)


def mean(values: Iterable[float | None], weights: Sequence[float] | None = None) -> float | None:
    """Mean over the scored values, weighted if they are of a sample; None if no value is scored."""
    if weights is None:
        scored = [value for value in values if value is not None]
        return sum(scored) / len(scored) if scored else None

    scored, scored_weights = [], []
    for value, weight in zip(values, weights, strict=True):
        if value is not None:
            scored.append(value)
            scored_weights.append(weight)

    return weighted_mean(scored, scored_weights) if scored else None


def sum_or_none(values: Iterable[float | None]) -> float | None:
    """Sum; None if any part is unknown."""
    total = 0.0
    for value in values:
        # A sum without the unknown parts would look like the total.
        if value is None:
            return None

        total += value

    return total


def sample_std(values: Iterable[float | None]) -> float | None:
    """Sample standard deviation (n - 1) of the scored values; None for fewer than two."""
    scored = [value for value in values if value is not None]
    if len(scored) < 2:
        return None

    # Equal values may differ from their computed mean in the last digit.
    if len(set(scored)) == 1:
        return 0.0

    centre = sum(scored) / len(scored)
    return sqrt(sum((value - centre) ** 2 for value in scored) / (len(scored) - 1))


def scored_mean(
    values: Sequence[float | None],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
) -> ClusteredMean | None:
    """`clustered_mean` of the scored values, which are shares; None if no value is scored."""
    return clustered_mean(*_scored_values(values, clusters, weights), is_share=True)


def _scored_values(
    values: Sequence[float | None],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None,
) -> tuple[list[float], list[Hashable], list[float]]:
    scored, scored_clusters, scored_weights = [], [], []
    for value, cluster, weight in zip(values, clusters, scales_of(values, weights), strict=True):
        if value is not None:
            scored.append(value)
            scored_clusters.append(cluster)
            scored_weights.append(weight)

    return scored, scored_clusters, scored_weights


def design_effect(
    values: Sequence[float | None],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
) -> float | None:
    """How many times the variance of the mean exceeds that of independent values, s²/N (Kish,
    1965). None if either is undefined.
    """
    scored, scored_clusters, scored_weights = _scored_values(values, clusters, weights)
    se, std = clustered_se(scored, scored_clusters, scored_weights), sample_std(scored)
    if se is None or not std:
        return None

    return se**2 / (std**2 / len(scored))


def bounds(
    values: Sequence[float | None], weights: Sequence[float] | None = None
) -> tuple[float, float] | None:
    """Worst and best case of a mean: unscored values as 0, and as 1. None without values."""
    if not values:
        return None

    worst = [value or 0.0 for value in values]
    best = [1.0 if value is None else value for value in values]
    return weighted_mean(worst, weights), weighted_mean(best, weights)
