"""Agreement of several judges."""

from collections import Counter
from collections.abc import Hashable, Sequence
from operator import eq

from msgspec import Struct

from memeval.statistics.clusters import clustered_mean


def krippendorff_alpha(units: Sequence[Sequence[Hashable | None]]) -> float | None:
    """Krippendorff's α for nominal labels: 1 is agreement, 0 is chance, below 0 is worse.

    `units` contains the labels of each unit, one per judge; None if a judge gave none. α = 1 -
    D_o/D_e: the disagreement of pairs of labels within units, over that of pairs of all labels.
    Units with fewer than two labels are ignored. None if no unit has two, or if all labels are the
    same.

    Source: Krippendorff, Content Analysis (2004), section 11.3; Hayes & Krippendorff, Communication
    Methods and Measures 1 (2007).
    """
    observed, totals = 0.0, Counter[Hashable]()
    for unit in units:
        labels = Counter(label for label in unit if label is not None)
        count = labels.total()
        if count > 1:
            observed += _differing_pairs(labels) / (count - 1)
            totals += labels

    expected = _differing_pairs(totals)
    if expected == 0:
        return None

    return 1 - observed * (totals.total() - 1) / expected


def _differing_pairs(labels: Counter[Hashable]) -> int:
    """Ordered pairs of labels that are not the same."""
    return labels.total() ** 2 - sum(number**2 for number in labels.values())


class Kappa(Struct, frozen=True):
    """Cohen's κ of two judges with its 95 % interval."""

    value: float
    low: float | None
    high: float | None
    """None for fewer than two clusters, and if the spread is 0, which proves no certainty."""


def cohen_kappa(
    first: Sequence[Hashable], second: Sequence[Hashable], clusters: Sequence[Hashable]
) -> Kappa | None:
    """Cohen's κ for nominal labels: 1 is agreement, 0 is chance, below 0 is worse.

    `first` and `second` contain the labels of two judges for the same items. κ = (p_o - p_e)/(1 -
    p_e), with p_o the share of equal labels and p_e = Σ_c p_1c p_2c. Its interval is that of the
    mean of κ + (1[a = b] - p_o - (1 - κ)(p_2a + p_1b - 2 p_e))/(1 - p_e) over items with labels a
    and b, clustered: for items that are independent its error is that of Fleiss, Cohen & Everitt.
    None without items, or if both gave all items the same label.

    Source: Cohen, Educational and Psychological Measurement 20 (1960); Fleiss, Cohen & Everitt,
    Psychological Bulletin 72 (1969), eq. 13, as the delta method; clusters as in `clustered_mean`.
    """
    count = len(first)
    ones, twos = Counter(first), Counter(second)
    chance = sum(number * twos[label] for label, number in ones.items())
    if chance == count**2:
        return None

    observed = sum(map(eq, first, second)) / count
    expected = chance / count**2
    kappa = (observed - expected) / (1 - expected)
    influences = []
    for one, two in zip(first, second, strict=True):
        agreement = (one == two) - observed
        by_chance = (1 - kappa) * ((twos[one] + ones[two]) / count - 2 * expected)
        influences.append(kappa + (agreement - by_chance) / (1 - expected))

    mean = clustered_mean(influences, clusters, is_share=False)
    if mean is None or mean.low is None or mean.high is None:
        return Kappa(kappa, low=None, high=None)

    return Kappa(kappa, low=max(mean.low, -1.0), high=min(mean.high, 1.0))
