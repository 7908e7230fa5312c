"""One share's interval: Wilson's, with the effective number of questions given conversations."""

from collections.abc import Sequence
from functools import lru_cache
from math import cos, exp, lgamma, log, pi, sqrt, tan

_PANELS = 64
_HALVINGS, _STEPS = 10, 4
_NODES = (
    (0.1834346424956498, 0.3626837833783620),
    (0.5255324099163290, 0.3137066458778873),
    (0.7966664774136267, 0.2223810344533745),
    (0.9602898564975363, 0.1012285362903763),
)
"""Nodes and weights of Gauss-Legendre integration with eight points, by symmetry."""

Interval = tuple[float, float]


def dot(first: Sequence[float], second: Sequence[float]) -> float:
    """Σ x y."""
    return float(sum(x * y for x, y in zip(first, second, strict=True)))


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Σ w x / Σ w."""
    return dot(weights, values) / sum(weights)


def share_interval(
    values: Sequence[float], clusters: Sequence[str], weights: Sequence[float]
) -> Interval | None:
    """95 % interval of a mean of values in [0, 1]; None for fewer than two clusters."""
    names = list(dict.fromkeys(clusters))
    if len(names) < 2:
        return None

    if min(weights) == max(weights):
        weights = [1.0] * len(values)

    mean, total = weighted_mean(values, weights), sum(weights)
    residual = dict.fromkeys(names, 0.0)
    size, square = residual.copy(), residual.copy()
    for value, name, weight in zip(values, clusters, weights, strict=True):
        residual[name] += weight * (value - mean)
        size[name] += weight
        square[name] += weight * weight

    squares = sum(square.values())
    robust = sum(residual[g] ** 2 / (1 - size[g] / total) for g in names) / total**2
    # The variance is p(1 - p) if all values are 0 or 1, otherwise the sample variance.
    spread = variance = mean * (1 - mean)
    if not {0.0, 1.0}.issuperset(values):
        deviations = weighted_mean([(value - mean) ** 2 for value in values], weights)
        variance = deviations / (1 - dot(weights, weights) / total**2)

    error = max(robust, variance * squares / total**2)
    effective = total**2 / squares
    if max(values) - min(values) >= 1e-12 and spread > 0 and error > 0:
        effective = spread / error

    t = student(_degrees_of_freedom(list(size.values()), list(square.values())))
    return _wilson(min(max(mean, 0.0), 1.0), effective, t)


def _wilson(p: float, n: float, t: float) -> Interval:
    z = t * t
    middle = (p + z / (2 * n)) / (1 + z / n)
    half = t * sqrt(p * (1 - p) / n + z / (4 * n * n)) / (1 + z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def _degrees_of_freedom(sizes: Sequence[float], squares: Sequence[float]) -> float:
    """Bell and McCaffrey's degrees of freedom: tr² / Σ m² of the whole matrix, by cluster pairs."""
    total, all_squares = sum(sizes), sum(squares)
    scale = [(1 - size / total) ** -0.5 for size in sizes]
    trace = norm = 0.0
    for g, size_g in enumerate(sizes):
        for h, size_h in enumerate(sizes):
            cell = size_g * size_h * all_squares / total**2
            cell -= (size_g * squares[h] + size_h * squares[g]) / total
            if g == h:
                cell += squares[g]

            cell *= scale[g] * scale[h]
            norm += cell * cell
            if g == h:
                trace += cell

    return trace * trace / norm


@lru_cache(maxsize=1024)
def student(freedom: float) -> float:
    """The t with P(|T| <= t) = 0.95.

    With t = √ν tan u, the probability is proportional to the integral of cos^(ν-1) from 0 to u. u
    is found by bisection and then by Newton's method.
    """
    wanted = 0.95 * sqrt(pi) / 2 * exp(lgamma(freedom / 2) - lgamma((freedom + 1) / 2))
    low, high = 0.0, pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _cosines(middle, freedom - 1) < wanted:
            low = middle
        else:
            high = middle

    # Starts below the root: the integral is concave, so no Newton step overshoots.
    u = low
    for _ in range(_STEPS):
        u += (wanted - _cosines(u, freedom - 1)) / _power(u, freedom - 1)

    return sqrt(freedom) * tan(u)


def _power(u: float, exponent: float) -> float:
    return exp(exponent * log(cos(u)))


def _cosines(end: float, exponent: float) -> float:
    """∫ cos^exponent from 0 to `end`."""
    width = end / _PANELS / 2
    total = 0.0
    for panel in range(_PANELS):
        centre = (2 * panel + 1) * width
        for node, weight in _NODES:
            both = _power(centre - node * width, exponent) + _power(centre + node * width, exponent)
            total += weight * width * both

    return total
