"""Errors of means whose values hang together within clusters: the questions of one conversation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import sqrt

from memeval.statistics.student import quantile

CONFIDENCE = 0.95
POWER = 0.80


def cluster_sums(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    centre: float = 0.0,
    weights: Sequence[float] | None = None,
) -> dict[Hashable, float]:
    """Σ w (value - `centre`) of each cluster, in the order in which the clusters first occur.

    Without weights, each w is 1.
    """
    sums: dict[Hashable, float] = {}
    scales = [1.0] * len(values) if weights is None else weights
    for value, cluster, scale in zip(values, clusters, scales, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + scale * (value - centre)

    return sums


def weighted_mean(values: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Σ w x / Σ w; the plain mean without weights."""
    if weights is None:
        return sum(values) / len(values)

    pairs = zip(values, weights, strict=True)
    return sum(weight * value for value, weight in pairs) / sum(weights)


def clustered_se(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
) -> float | None:
    """Standard error of the mean of values that are independent between clusters only.

    SE = sqrt(G/(G-1) · Σ_g (Σ_{i in g} (x_i - mean))²) / N, the "CR1" form. For differences of
    pairs it is the error of the paired difference. None for fewer than two clusters.

    With weights, of a sample, it is sqrt(G/(G-1) · Σ_g (Σ_{i in g} w_i (x_i - mean))²) / Σ w, with
    the weighted mean: the "ultimate cluster" form, which holds both what the choice of the
    conversations and what the choice of their questions add. Source: Hansen, Hurwitz & Madow,
    Sample Survey Methods and Theory (1953).

    Source: Liang & Zeger, Biometrika 73 (1986); the factor is that of Cameron & Miller, Journal of
    Human Resources 50 (2015), for a mean.
    """
    if not values:
        return None

    mean = weighted_mean(values, weights)
    residuals = cluster_sums(values, clusters, mean, weights)
    groups = len(residuals)
    if groups < 2:
        return None

    # The residuals of equal values are only rounding: their error is exactly 0.
    if min(values) == max(values):
        return 0.0

    squares = sum(residual**2 for residual in residuals.values())
    se = sqrt(groups / (groups - 1) * squares) / (len(values) if weights is None else sum(weights))
    # Residuals that cancel within each cluster leave only rounding, too: an error of 0.
    rounding = 1e-12 * max(map(abs, values))

    return se if se > rounding else 0.0


def independent_se(values: Sequence[float], weights: Sequence[float] | None = None) -> float | None:
    """Standard error of a mean as if all values were independent: s / sqrt(N).

    With weights, that of `clustered_se` where each value is a cluster of its own, which is the same
    for equal weights. None for fewer than two values.
    """
    count = len(values)
    if count < 2:
        return None
    if weights is not None:
        return clustered_se(values, range(count), weights)

    mean = sum(values) / count
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)

    return sqrt(variance / count)


def detectable_difference(se: float, groups: int) -> float:
    """The smallest true difference that has an 80 % chance of being shown (MDE).

    MDE = (t(.975, G-1) + t(.80, G-1)) · SE. With ten clusters it is 3.146 · SE, not 2.8 · SE.

    Source: Bloom, Evaluation Review 19 (1995).
    """
    return (quantile(groups - 1, (1 + CONFIDENCE) / 2) + quantile(groups - 1, POWER)) * se


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean with its error, from values that hang together within clusters."""

    mean: float
    count: int
    """Values."""
    groups: int
    """Clusters."""
    se: float | None
    """Clustered standard error; None for fewer than two clusters."""
    independent_se: float | None
    """What the standard error would be if all values were independent."""
    low: float | None
    high: float | None
    """95 % interval by Student's t with `groups` - 1 degrees of freedom; None where `se` is None,
    or 0: a spread of 0 over a few clusters does not prove certainty.
    """
    mde: float | None
    """Smallest difference that these values show with a chance of 80 %."""
    mde_from_independent: bool
    """Whether `mde` rests on `independent_se`, because that is larger than `se`."""

    @property
    def half_width(self) -> float | None:
        """The figure after the ±; None where there is no interval."""
        return None if self.high is None else self.high - self.mean


def clustered_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
) -> ClusteredMean | None:
    """The mean of values with interval and detectable difference; None for no values.

    The detectable difference takes the larger of the two standard errors. With few clusters the
    clustered one can come out far too small, even 0, by chance. `weights` are those of a sample.
    """
    if not values:
        return None

    if weights is not None and min(weights) == max(weights):
        weights = None  # equal weights change nothing but the rounding

    mean, count, groups = weighted_mean(values, weights), len(values), len(set(clusters))
    se, independent = clustered_se(values, clusters, weights), independent_se(values, weights)
    low = high = mde = None
    from_independent = False

    if se:
        reach = quantile(groups - 1, (1 + CONFIDENCE) / 2) * se
        low, high = mean - reach, mean + reach

    if se is not None and independent is not None and max(se, independent) > 0:
        mde = detectable_difference(max(se, independent), groups)
        from_independent = independent > se

    return ClusteredMean(
        mean=mean,
        count=count,
        groups=groups,
        se=se,
        independent_se=independent,
        low=low,
        high=high,
        mde=mde,
        mde_from_independent=from_independent,
    )
