"""Whether the statistics keep what they promise: intervals, tests and detectable differences, on
made-up cells whose truth is known.

    python perf/coverage.py [--runs 4000]

Ten conversations of different sizes, as in LoCoMo; design effects from 1 to 4. It prints the table
of docs/statistics.md and, with --picture, draws docs/images/statistics.svg.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from memeval.statistics.clusters import clustered_mean, detectable_difference
from memeval.statistics.flips import flip_p

SIZES = (152, 81, 152, 199, 178, 123, 150, 191, 156, 158)
"""Questions of LoCoMo's ten conversations in categories 1 to 4."""
SPREAD = 0.45
"""Standard deviation of the difference on one question."""
DESIGN_EFFECTS = (1.0, 2.0, 3.0, 4.0)


@dataclass(frozen=True)
class Kept:
    """Shares of the simulated comparisons, in per cent."""

    design_effect: float
    covered: float
    """The clustered interval held the true difference."""
    covered_naive: float
    """The interval of independent questions did."""
    rejected: float
    """The flip test rejected (p <= .05) where there is no difference."""
    power: float
    """A t test shows a true difference of the size of the MDE."""
    power_flips: float
    """The flip test does."""


def between_variance(effect: float, sizes: Sequence[int]) -> float:
    """The variance between conversations that gives a design effect.

    The variance of the mean is SPREAD²/N + τ²·Σ n²/N², which is to be `effect` times SPREAD²/N.
    """
    total = sum(sizes)
    return (effect - 1) * SPREAD**2 * total / sum(size**2 for size in sizes)


def simulate(effect: float, runs: int, rng: np.random.Generator) -> Kept:
    """Many comparisons of two cells under one design effect."""
    sizes = np.array(SIZES)
    tau = sqrt(between_variance(effect, SIZES))
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    true_se = SPREAD * sqrt(effect / sizes.sum())
    shown = detectable_difference(true_se, len(sizes))
    counts = np.zeros(5)

    for _ in range(runs):
        noise = rng.normal(0, SPREAD, sizes.sum()) + rng.normal(0, tau, len(sizes))[clusters]
        found = clustered_mean(noise.tolist(), clusters.tolist())
        assert found and found.low is not None and found.high is not None
        assert found.half_width is not None and found.independent_se is not None
        sums = np.bincount(clusters, noise)
        moved = sums + shown * sizes

        counts += [
            found.low <= 0 <= found.high,
            abs(found.mean) <= 1.96 * found.independent_se,
            flip_p(sums.tolist()) <= 0.05,
            found.mean + shown > found.half_width,
            flip_p(moved.tolist()) <= 0.05,
        ]

    return Kept(effect, *(100 * counts / runs))


def draw(kept: Sequence[Kept], path: Path) -> None:
    """Coverage of the two intervals against the design effect."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    effects = [row.design_effect for row in kept]
    axes.axhline(95, color="#999999", linewidth=1, linestyle="--")
    axes.plot(effects, [row.covered for row in kept], "o-", color="#0072B2")
    axes.plot(effects, [row.covered_naive for row in kept], "s-", color="#D55E00")
    axes.annotate("clustered by conversation", (2.0, 96.3), color="#0072B2", fontsize=9)
    axes.annotate("questions taken for independent", (2.1, 85.5), color="#D55E00", fontsize=9)
    axes.set_xticks(effects)
    axes.set_ylim(60, 100)
    axes.set_xlabel("design effect: how much the questions of a conversation hang together")
    axes.set_ylabel("intervals that hold the truth, %")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)

    # Text stays text, and the same figures give the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "memeval"}):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Prints the table, and draws it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()

    rng = np.random.default_rng(20_260_101)
    kept = [simulate(effect, options.runs, rng) for effect in DESIGN_EFFECTS]
    names = ["design effect", "interval", "naive interval", "flip test errs", "power, t"]
    names.append("power, flips")
    print(f"| {' | '.join(names)} |\n|{' ---: |' * len(names)}")
    for row in kept:
        figures = [row.covered, row.covered_naive, row.rejected, row.power, row.power_flips]
        shown = " | ".join(f"{figure:.1f} %" for figure in figures)
        print(f"| {row.design_effect:.0f} | {shown} |")

    if options.picture:
        draw(kept, options.picture)


if __name__ == "__main__":
    main()
