"""How often intervals cover the truth, and how often detectable differences are shown, in simulated
comparisons whose truth is known.

    python perf/coverage.py [--runs 4000]

Prints the tables of docs/statistics.md, and with `--picture docs/images/statistics.svg` draws the
first.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from operator import attrgetter
from pathlib import Path

import numpy as np

from memeval.report.tables import table
from memeval.statistics.clusters import clustered_mean
from memeval.statistics.differences import detectable_difference
from memeval.statistics.flips import flip_test
from memeval.statistics.student import quantile

SIZES = (152, 81, 152, 199, 178, 123, 150, 191, 156, 158)
"""Questions of LoCoMo's ten conversations in categories 1 to 4."""
CONVERSATIONS: Mapping[str, Sequence[int]] = {
    "LoCoMo's ten": SIZES,
    "ten of 100": (100,) * 10,
    "six of 100": (100,) * 6,
    "eight of 100": (100,) * 8,
    "one with half of all": (900, *((100,) * 9)),
    "twelve from 10 to 300": (10, 20, 30, 40, 50, 60, 80, 100, 150, 200, 250, 300),
}
SPREAD = 0.45
"""Standard deviation of the difference on one question."""
DESIGN_EFFECTS = (1.0, 2.0, 3.0, 4.0)
SHARES: Sequence[tuple[Sequence[int], float]] = (
    (SIZES, 0.05),
    (SIZES, 0.35),
    (SIZES, 0.90),
    (SIZES, 0.97),
    ((31, 31, 31), 0.97),
    ((31,) * 5, 0.97),
)
CORRELATION = 0.03
"""Between two questions of one conversation, in the simulated shares."""


@dataclass(frozen=True)
class Rates:
    """How often something was true in the simulated comparisons, in per cent."""

    covered: float
    """The interval by flips contained the true difference."""
    covered_t: float
    """An interval by Student's t and the clustered error did."""
    covered_naive: float
    """An interval that treats questions as independent did."""
    power: float
    """A true difference as large as the MDE was shown."""


def between_variance(effect: float, sizes: Sequence[int]) -> float:
    """The variance between conversations that gives a design effect.

    The variance of the mean is SPREAD²/N + τ²·Σ n²/N², which must be `effect` times SPREAD²/N.
    """
    squares = sum(size**2 for size in sizes)
    return (effect - 1) * SPREAD**2 * sum(sizes) / squares


def simulate(
    effect: float, runs: int, rng: np.random.Generator, conversations: Sequence[int] = SIZES
) -> Rates:
    """Simulates comparisons of two runs without a true difference, under one design effect."""
    sizes = np.array(conversations)
    groups, total = len(sizes), sizes.sum()
    tau = sqrt(between_variance(effect, conversations))
    clusters = np.repeat(np.arange(groups), sizes)
    mde = detectable_difference(SPREAD * sqrt(effect / total), groups) or 0.0
    t = quantile(groups - 1, 0.975)
    counts = np.zeros(4)

    for _ in range(runs):
        differences = rng.normal(0, SPREAD, total) + rng.normal(0, tau, groups)[clusters]
        sums, mean = np.bincount(clusters, differences), differences.mean()
        clustered_se = sqrt(groups / (groups - 1) * np.square(sums - sizes * mean).sum()) / total
        naive_se = differences.std(ddof=1) / sqrt(total)

        without = flip_test(sums.tolist(), sizes.tolist())
        with_mde = flip_test((sums + mde * sizes).tolist(), sizes.tolist())
        assert without.low is not None and without.high is not None and with_mde.low is not None
        counts += [
            without.low <= 0 <= without.high,
            abs(mean) <= t * clustered_se,
            abs(mean) <= 1.96 * naive_se,
            with_mde.low > 0,
        ]

    return Rates(*(100 * counts / runs))


def simulate_share(
    share: float, conversations: Sequence[int], runs: int, rng: np.random.Generator
) -> float:
    """How often the interval of a share contains the truth, in per cent."""
    scale = 1 / CORRELATION - 1
    clusters = np.repeat(np.arange(len(conversations)), conversations).tolist()
    covered = 0
    for _ in range(runs):
        rates = rng.beta(share * scale, (1 - share) * scale, len(conversations))
        values: list[float] = []
        for rate, size in zip(rates, conversations, strict=True):
            values += (rng.random(size) < rate).astype(float).tolist()

        mean = clustered_mean(values, clusters, is_share=True)
        assert mean and mean.low is not None and mean.high is not None
        covered += mean.low <= share <= mean.high

    return 100 * covered / runs


def draw(rates: Sequence[Rates], path: Path) -> None:
    """Draws the coverage of two intervals against the design effect."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.axhline(95, color="#999999", linewidth=1, linestyle="--")
    axes.plot(DESIGN_EFFECTS, list(map(attrgetter("covered"), rates)), "o-", color="#0072B2")
    axes.plot(DESIGN_EFFECTS, list(map(attrgetter("covered_naive"), rates)), "s-", color="#D55E00")
    axes.annotate("by flipping conversations", (2.0, 97.0), color="#0072B2", fontsize=9)
    axes.annotate("questions treated as independent", (2.1, 85.5), color="#D55E00", fontsize=9)
    axes.set_xticks(DESIGN_EFFECTS)
    axes.set_ylim(60, 100)
    axes.set_xlabel("design effect: how strongly the questions of a conversation are correlated")
    axes.set_ylabel("intervals that cover the truth, %")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)

    # Text stays text, and the same figures give the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "memeval"}):
        figure.savefig(path, metadata={"Date": None})


def row(label: str, rates: Rates) -> list[str]:
    """A row of a table of rates."""
    figures = [rates.covered, rates.covered_t, rates.covered_naive, rates.power]
    return [label, *map("{:.1f} %".format, figures)]


def show(title: str, labels: Iterable[str], rates: Sequence[Rates]) -> None:
    """Prints a table of rates."""
    header = [title, "interval by flips", "t interval", "naive interval", "power at the MDE"]
    print(*table(header, map(row, labels, rates), leading=0), "", sep="\n")


def main() -> None:
    """Prints the tables, and draws the first if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()

    rng = np.random.default_rng(20_260_101)
    by_effect = [simulate(effect, options.runs, rng) for effect in DESIGN_EFFECTS]
    show("design effect", map("{:.0f}".format, DESIGN_EFFECTS), by_effect)

    by_sizes = [simulate(2.0, options.runs, rng, sizes) for sizes in CONVERSATIONS.values()]
    show("conversations", CONVERSATIONS, by_sizes)

    rows = []
    for sizes, share in SHARES:
        covered = simulate_share(share, sizes, options.runs, rng)
        rows.append([f"{len(sizes)}", f"{100 * share:.0f} %", f"{covered:.1f} %"])

    print(*table(["conversations", "accuracy", "interval"], rows, leading=0), sep="\n")
    if options.picture:
        draw(by_effect, options.picture)


if __name__ == "__main__":
    main()
