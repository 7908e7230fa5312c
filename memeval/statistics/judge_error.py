"""Accuracies corrected for the judge's own errors."""

from collections.abc import Hashable, Mapping, Sequence
from math import sqrt

from msgspec import Struct

from memeval.statistics.clusters import cluster_sums, effective_count, weighted_mean
from memeval.statistics.proportions import Z95


class CorrectedMean(Struct, frozen=True):
    """A share of right answers, corrected by labels that people gave to some of them."""

    mean: float
    se: float
    power: float
    """λ: weight of the judge's other verdicts, from 0 (only the labels count) to 1."""


class JudgedAnswers(Struct, frozen=True):
    """Answers with the verdicts of a judge."""

    verdicts: Sequence[float]
    """1 for right, 0 for wrong."""
    weights: Sequence[float]
    """Those of a sample; otherwise 1."""
    questions: Sequence[Hashable]
    """The question of each answer: repeats of a question are not independent."""
    clusters: Sequence[Hashable] | None = None
    """The conversation of each answer; None if answers count as independent."""


def prediction_powered_mean(
    labels: Sequence[float],
    labelled: JudgedAnswers,
    others: JudgedAnswers,
    power: float | None = None,
) -> CorrectedMean:
    """The share of right answers, from few labels and many verdicts (PPI++).

    θ = λ·mean(Ŷ_others) + mean(Y - λŶ_labelled), Var = Var(λŶ_o)/N + Var(Y - λŶ)/n, and λ =
    Cov(Y, Ŷ) / ((1 + n/N)·Var(Ŷ)), clipped to [0, 1]. Cov and the two variances divide by n, the
    pooled Var(Ŷ) by one less. λ depends only on the data, so a useless judge does no harm. The
    labels must be drawn from the run itself.

    With clusters the two parts are not independent, since both come from the same conversations.
    The influence of each conversation is summed over both parts: λ(Ŷ_o - mean)/N and (Y - λŶ -
    mean)/n. Var = G/(G-1) Σ_g (Σ influence)², never below that of independent questions. With the
    weights of a sample, all means are weighted, and n is (Σ w)²/Σ w². Raises `ValueError` if there
    are no labels, no further verdicts, or fewer than two clusters.

    Source: Angelopoulos, Duchi & Zrnic, PPI++ (arXiv 2311.01453).
    """
    if not labels or not others.verdicts:
        raise ValueError("labels, their verdicts and further verdicts are needed")
    if power is None:
        power = _best_power(labels, labelled, others)

    rectifier = []
    for label, verdict in zip(labels, labelled.verdicts, strict=True):
        rectifier.append(label - power * verdict)

    scaled = [power * verdict for verdict in others.verdicts]
    mean = weighted_mean(scaled, others.weights) + weighted_mean(rectifier, labelled.weights)
    influences = _influences(scaled, others.weights) + _influences(rectifier, labelled.weights)
    by_question = cluster_sums(influences, [*others.questions, *labelled.questions])
    variance = _sum_of_squares(by_question)
    if labelled.clusters is not None and others.clusters is not None:
        sums = cluster_sums(influences, [*others.clusters, *labelled.clusters])
        if len(sums) < 2:
            raise ValueError("the answers must come from two clusters or more")

        variance = max(variance, len(sums) / (len(sums) - 1) * _sum_of_squares(sums))

    return CorrectedMean(mean=mean, se=sqrt(variance), power=power)


def _sum_of_squares(sums: Mapping[Hashable, float]) -> float:
    return sum(total**2 for total in sums.values())


def _influences(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Effect of each value on the weighted mean."""
    centre, total = weighted_mean(values, weights), sum(weights)
    pairs = zip(values, weights, strict=True)
    return [weight * (value - centre) / total for value, weight in pairs]


def _best_power(labels: Sequence[float], labelled: JudgedAnswers, others: JudgedAnswers) -> float:
    """The λ with the least variance."""
    pooled = [*labelled.verdicts, *others.verdicts]
    weights = [*labelled.weights, *others.weights]
    # With n - 1, unlike the covariance below: the reference values hold for this mix.
    count = effective_count(weights)
    spread = _covariance(pooled, pooled, weights) * count / (count - 1)
    if spread == 0:  # a judge whose verdict is always the same carries no information
        return 0.0

    ratio = effective_count(labelled.weights) / effective_count(others.weights)
    power = _covariance(labels, labelled.verdicts, labelled.weights) / ((1 + ratio) * spread)

    # Above 1 the judge would count more than the labels; below 0 its verdicts would be reversed.
    return min(max(power, 0.0), 1.0)


def _covariance(
    values: Sequence[float], others: Sequence[float], weights: Sequence[float]
) -> float:
    """The weighted covariance, with 1/n."""
    centre, other_centre = weighted_mean(values, weights), weighted_mean(others, weights)
    products = []
    for value, other in zip(values, others, strict=True):
        distance = value - centre
        products.append(distance * (other - other_centre))

    return weighted_mean(products, weights)


class JudgeRates(Struct, frozen=True):
    """A judge's rates of right verdicts, from labels of other answers."""

    right_kept: float
    """q1: P(says right | right)."""
    right_labels: int
    """Right answers that the judge was tested on."""
    wrong_caught: float
    """q0: P(says wrong | wrong). It depends on the kind of wrong answers."""
    wrong_labels: int
    """Wrong answers that the judge was tested on."""


class CorrectedShare(Struct, frozen=True):
    """A share that a judge's verdicts imply, with its 95 % interval."""

    share: float
    low: float
    high: float


def rogan_gladen(called_right: float, count: float, judge: JudgeRates) -> CorrectedShare:
    """The true share of right answers if a judge calls `called_right` of `count` right.

    `count` need not be whole: under the weights of a sample it is (Σ w)²/Σ w².

    θ = (p + q0 - 1)/(q0 + q1 - 1), clipped to [0, 1]. The interval of Lee et al.: p̃ = (np +
    z²/2)/(n + z²) and q̃ = (mq + 1)/(m + 2), θ̃ from them, shifted by 2z²(-(1 - θ̃)q̃0(1 - q̃0)/m̃0
    + θ̃ q̃1(1 - q̃1)/m̃1), ± z·SE. As q0 depends on the kind of wrong answers, give a range over
    kinds of wrong answer, never one figure. Raises `ValueError` if the judge is no better than
    chance (q0 + q1 <= 1).

    Source: Rogan & Gladen, American Journal of Epidemiology 107 (1978); Lee et al., arXiv
    2511.21140.
    """
    sharpness = judge.wrong_caught + judge.right_kept - 1
    if sharpness <= 0:
        raise ValueError("the judge is no better than chance: q0 + q1 must exceed 1")

    share = (called_right + judge.wrong_caught - 1) / sharpness

    # Estimates are pulled towards one half, so that a rate of 0 or 1 also has an error.
    square = Z95**2
    n = count + square
    m0, m1 = judge.wrong_labels + 2, judge.right_labels + 2
    p = (count * called_right + square / 2) / n
    q0 = (judge.wrong_labels * judge.wrong_caught + 1) / m0
    q1 = (judge.right_labels * judge.right_kept + 1) / m1
    if q0 + q1 <= 1:
        raise ValueError("too few labels to tell the judge from chance")

    drawn = (p + q0 - 1) / (q0 + q1 - 1)
    var0, var1 = q0 * (1 - q0) / m0, q1 * (1 - q1) / m1
    # A ratio of estimates is biased if labels are few: the interval is moved for it.
    shift = 2 * square * (-(1 - drawn) * var0 + drawn * var1)
    variance = p * (1 - p) / n + (1 - drawn) ** 2 * var0 + drawn**2 * var1
    reach = Z95 * sqrt(variance) / (q0 + q1 - 1)

    return CorrectedShare(
        share=clipped(share),
        low=clipped(drawn + shift - reach),
        high=clipped(drawn + shift + reach),
    )


def clipped(share: float) -> float:
    """The nearest value in [0, 1]."""
    return min(max(share, 0.0), 1.0)
