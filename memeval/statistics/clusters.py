"""Means of values that are correlated within clusters: the questions of one conversation.

This module computes the interval of a single figure, `differences` that of a difference.
"""

from collections.abc import Hashable, Mapping, Sequence
from math import sqrt

from msgspec import Struct

from memeval.statistics.proportions import wilson_ends
from memeval.statistics.student import two_sided_quantile

CONFIDENCE = 0.95
ROUNDING = 1e-12
"""A difference below this, in any unit, is a rounding error."""


def scales_of(values: Sequence[float | None], weights: Sequence[float] | None) -> Sequence[float]:
    """The weights of values; without weights, each is 1."""
    return [1.0] * len(values) if weights is None else weights


def cluster_sums(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    centre: float = 0.0,
    weights: Sequence[float] | None = None,
) -> dict[Hashable, float]:
    """Σ w (value - `centre`) of each cluster, in the order in which the clusters first occur.

    Without weights, each w is 1. Values that cancel have a sum of 0.
    """
    sums: dict[Hashable, float] = {}
    scales = scales_of(values, weights)
    for value, cluster, scale in zip(values, clusters, scales, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + scale * (value - centre)

    # Thirds, such as means over three repeats, cancel only up to rounding.
    for cluster, total in sums.items():
        if abs(total) < ROUNDING:
            sums[cluster] = 0.0

    return sums


def weighted_mean(values: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Σ w x / Σ w; the plain mean without weights."""
    if weights is None:
        return sum(values) / len(values)

    pairs = zip(values, weights, strict=True)
    return sum(weight * value for value, weight in pairs) / sum(weights)


def effective_count(weights: Sequence[float]) -> float:
    """Number of equal weights that carry the same information: (Σ w)²/Σ w² (Kish, 1965)."""
    return float(sum(weights) ** 2 / sum(weight**2 for weight in weights))


def clustered_se(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
) -> float | None:
    """Standard error of the mean of values that are independent between clusters only.

    SE = sqrt(G/(G-1) · Σ_g (Σ_{i in g} (x_i - mean))²) / N, the "CR1" form. For differences of
    pairs it is the error of the paired difference. None for fewer than two clusters.

    With the weights of a sample, it is sqrt(G/(G-1) · Σ_g (Σ_{i in g} w_i (x_i - mean))²) / Σ w,
    with the weighted mean: the "ultimate cluster" form, which includes both the choice of the
    conversations and the choice of their questions. Source: Hansen, Hurwitz & Madow, Sample Survey
    Methods and Theory (1953).

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
    if max(values) - min(values) < ROUNDING:
        return 0.0

    squares = sum(residual**2 for residual in residuals.values())
    return sqrt(groups / (groups - 1) * squares) / sum(scales_of(values, weights))


def independent_se(values: Sequence[float], weights: Sequence[float] | None = None) -> float | None:
    """Standard error of a mean as if all values were independent: s / sqrt(N).

    This is `clustered_se` with one cluster per value. None for fewer than two values.
    """
    return clustered_se(values, range(len(values)), weights)


class ClusteredMean(Struct, frozen=True):
    """A figure of one cell with its 95 % interval, which need not be symmetric."""

    mean: float
    count: int
    """Number of values."""
    groups: int
    """Number of clusters."""
    se: float | None
    """Standard error: clustered, and never below that of independent values. None for fewer than
    two clusters, and for values that are all equal, whose spread of 0 proves no certainty.
    """
    low: float | None
    high: float | None
    """None for fewer than two clusters."""


def clustered_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
    *,
    is_share: bool,
) -> ClusteredMean | None:
    """The mean of values with its interval; None without values.

    r_g = Σ_{i in g} w_i (x_i - mean), h_g = W_g/W, V = Σ r_g²/(1 - h_g)/W² (CR2), s² the variance
    of a value, t with Bell and McCaffrey's degrees of freedom. For shares in [0, 1]: Wilson's
    interval with n_eff = p(1 - p)/max(V, s²/n) and t. For other figures: mean ± t·sqrt(max(V,
    s²/n)). `weights` are those of a sample; n is then (Σ w)²/Σ w².

    Source: Bell & McCaffrey, Survey Methodology 28 (2002); Franco, Little, Louis & Slud, Journal of
    Survey Statistics and Methodology 7 (2019).
    """
    if not values:
        return None

    given = equal_as_none(weights)
    mean, count = weighted_mean(values, given), len(values)
    residuals = cluster_sums(values, clusters, mean, given)
    groups = len(residuals)
    if groups < 2:
        return ClusteredMean(mean, count, groups, se=None, low=None, high=None)

    scales = scales_of(values, given)
    total, squares = sum(scales), sum(scale**2 for scale in scales)
    sizes = list(cluster_sums([1.0] * count, clusters, weights=given).values())
    own_squares = list(cluster_sums(scales, clusters, weights=given).values())
    variance = _robust_variance(list(residuals.values()), sizes)
    independent = _value_variance(values, mean, scales, squares) * squares / total**2
    error = 0.0
    if max(values) - min(values) >= ROUNDING:
        error = max(variance, independent)

    factor = two_sided_quantile(_degrees_of_freedom(sizes, own_squares), CONFIDENCE)

    if is_share and min(values) >= 0 and max(values) <= 1:
        spread, effective = mean * (1 - mean), total**2 / squares
        if spread > 0 and error > 0:
            effective = spread / error

        low, high = wilson_ends(min(max(mean, 0.0), 1.0), effective, factor)
    elif error == 0:
        return ClusteredMean(mean, count, groups, se=None, low=None, high=None)
    else:
        low, high = mean - factor * sqrt(error), mean + factor * sqrt(error)

    return ClusteredMean(mean, count, groups, se=sqrt(error) or None, low=low, high=high)


def dominating_cluster(counts: Mapping[str, int]) -> str | None:
    """The cluster that contains half of all values or more, and more than any other; else None."""
    if len(counts) < 2:
        return None

    largest = max(counts, key=lambda name: counts[name])
    is_half = 2 * counts[largest] >= sum(counts.values())
    if is_half and list(counts.values()).count(counts[largest]) == 1:
        return largest

    return None


def equal_as_none(weights: Sequence[float] | None) -> Sequence[float] | None:
    """The weights; None if they are equal, as equal weights change only the rounding."""
    if weights is None or not weights or min(weights) == max(weights):
        return None

    return weights


def _robust_variance(residuals: Sequence[float], sizes: Sequence[float]) -> float:
    """The CR2 variance of a mean: Σ r_g²/(1 - h_g)/W², with h_g the share of a cluster."""
    total, parts = sum(sizes), []
    for residual, size in zip(residuals, sizes, strict=True):
        # The sum of the others instead of 1 - h keeps its precision if one cluster has nearly all.
        others = total - size
        parts.append(residual**2 * total / others)

    return sum(parts) / total**2


def _value_variance(
    values: Sequence[float], mean: float, scales: Sequence[float], squares: float
) -> float:
    """The variance of a value: p(1 - p) for right or wrong, otherwise s²."""
    if set(values) <= {0.0, 1.0}:
        return mean * (1 - mean)

    total, pairs = sum(scales), zip(values, scales, strict=True)
    spread = sum(scale * (value - mean) ** 2 for value, scale in pairs) / total

    # n/(n - 1), with the n of the weights.
    return spread / (1 - squares / total**2)


def _degrees_of_freedom(sizes: Sequence[float], squares: Sequence[float]) -> float:
    """Bell and McCaffrey's degrees of freedom of the CR2 variance of a mean: tr² / Σ m².

    m_gh = a_g a_h Cov(r_g, r_h), a = (1 - h)^-½, the covariances those of independent values:
    Q_g [g = h] - (W_g Q_h + W_h Q_g)/W + W_g W_h Q/W², where W and Q sum weights and their squares.
    Without weights it is n_g [g = h] - n_g n_h/N. G - 1 for clusters of equal sizes.
    """
    total, all_squares = sum(sizes), sum(squares)
    trace = diagonal = 0.0
    ww = wq = qq = 0.0
    for size, square in zip(sizes, squares, strict=True):
        scale = total / (total - size)
        off = -2 * size * square / total + size**2 * all_squares / total**2
        trace += scale * (square + off)
        diagonal += scale**2 * (2 * square * off + square**2)
        ww += scale * size**2
        wq += scale * size * square
        qq += scale * square**2

    # The rest of Σ m², for all pairs at once: 5,000 clusters have 25 million pairs.
    rest = 2 * (ww * qq + wq**2) / total**2
    rest += -4 * all_squares * wq * ww / total**3 + all_squares**2 * ww**2 / total**4
    return trace**2 / (diagonal + rest)
