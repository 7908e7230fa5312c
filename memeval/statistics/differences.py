"""The difference between two cells: mean, interval, p and the smallest detectable difference, all
from the same flips of the signs of clusters, so that they can't contradict each other.
"""

from collections.abc import Hashable, Sequence
from math import sqrt
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from memeval.statistics.clusters import (
    CONFIDENCE,
    ROUNDING,
    cluster_sums,
    clustered_se,
    equal_as_none,
    independent_se,
    weighted_mean,
)
from memeval.statistics.flips import flip_test
from memeval.statistics.student import quantile

POWER = 0.80
MIN_CLUSTERS = 6
"""With fewer, no pattern of signs reaches a p of .05: with five, the smallest is 2/2^5 = .0625."""
_BY_SIMULATION = {6: 4.40, 7: 3.50, 8: 3.36, 9: 3.28}
"""Factors of the detectable difference for few clusters, whose flips are coarser than t."""
_MORE_CLUSTERS = (10, 20, 50, 100, 200, 500, 1_000)
"""Numbers of clusters that are suggested to a reader who has too few."""


class ClusteredDifference(Struct, frozen=True):
    """The mean of paired differences, with its statistics."""

    mean: float
    count: int
    """Number of pairs."""
    groups: int
    """Number of clusters."""
    se: float | None
    """Clustered standard error (CR1); None for fewer than two clusters."""
    independent_se: float | None
    """The standard error if all pairs were independent."""
    low: float | None
    high: float | None
    """95 % interval by the flips; None for fewer than six clusters, which can't show a
    difference."""
    p: float | None
    """p of the flip test; None for fewer than two clusters. It is above .05 exactly if the interval
    contains 0.
    """
    mde: float | None
    """The smallest true difference that the flips show with 80 % power; None for fewer than six
    clusters, or if no pair differs.
    """
    mde_from_independent: bool
    """Whether `mde` is based on `independent_se`, because that is larger than `se`."""

    def reversed(self) -> Self:
        """The difference with the opposite sign."""
        low, high = self.low, self.high
        if low is not None and high is not None:
            low, high = -high, -low

        return replace(self, mean=-self.mean, low=low, high=high)

    @property
    def has_too_few_clusters(self) -> bool:
        """Whether these clusters are too few to show a difference of any size."""
        return self.groups < MIN_CLUSTERS

    @property
    def is_uniform(self) -> bool:
        """Whether pairs differ, but all clusters have the same mean: the interval has no width."""
        return self.se == 0 and self.low is not None and bool(self.mean or self.independent_se)

    @property
    def largest_error(self) -> float | None:
        """The standard error, never below that of independent pairs; None if no pair differs."""
        return max(self.se or 0.0, self.independent_se or 0.0) or None


def clustered_difference(
    differences: Sequence[float],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
    *,
    most: float | None = None,
) -> ClusteredDifference | None:
    """Mean of paired differences and its uncertainty; None without differences.

    `weights` are those of a sample. No difference can exceed `most`: 1 for shares.
    """
    if not differences:
        return None

    given = equal_as_none(weights)
    sums = cluster_sums(differences, clusters, weights=given)
    sizes = cluster_sums([1.0] * len(differences), clusters, weights=given)
    groups = len(sums)
    se, independent = (
        clustered_se(differences, clusters, given),
        independent_se(differences, given),
    )
    test = flip_test(list(sums.values()), list(sizes.values()))
    mde, from_independent = None, False
    if se is not None and independent is not None and max(se, independent) > 0:
        mde = detectable_difference(max(se, independent), groups, most=most)
        from_independent = mde is not None and independent > se

    mean = weighted_mean(differences, given)
    if abs(mean) < ROUNDING:
        mean = 0.0

    return ClusteredDifference(
        mean=mean,
        count=len(differences),
        groups=groups,
        se=se,
        independent_se=independent,
        low=test.low,
        high=test.high,
        p=test.p if groups > 1 else None,
        mde=mde,
        mde_from_independent=from_independent,
    )


def detectable_difference(se: float, groups: int, *, most: float | None = None) -> float | None:
    """The smallest true difference that the flips show with 80 % power (MDE).

    c(G) · SE: for ten clusters or more, c = t(.975, G-1) + t(.80, G-1), which is 3.146 for ten, not
    2.8; for fewer, by simulation of the flips. At most `most`. None for fewer than six clusters.

    Source: Bloom, Evaluation Review 19 (1995).
    """
    if groups < MIN_CLUSTERS:
        return None

    factor = _BY_SIMULATION.get(groups)
    if factor is None:
        factor = quantile(groups - 1, (1 + CONFIDENCE) / 2) + quantile(groups - 1, POWER)

    if most is None:
        return factor * se

    return min(factor * se, most)


def more_clusters(se: float, groups: int, *, most: float | None = None) -> tuple[int, float] | None:
    """A larger number of such clusters, and the difference they would show, if `groups` are few.

    Ten, or more if ten would show nothing below `most`: the error falls with the root of their
    number. None if none of the numbers would.
    """
    for wanted in _MORE_CLUSTERS:
        shown = detectable_difference(se * sqrt(groups / wanted), wanted)
        if shown is not None and (most is None or shown < most):
            return wanted, shown

    return None
