"""Whether the statistics keep what they promise: intervals and detectable differences, on made-up
cells whose truth is known.

    python perf/coverage.py [--runs 4000]

It prints the tables of docs/statistics.md and, with --picture, draws docs/images/statistics.svg.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np

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
    *((SIZES, share) for share in (0.05, 0.35, 0.90, 0.97)),
    ((31, 31, 31), 0.97),
    ((31,) * 5, 0.97),
)
CORRELATION = 0.03
"""Of two questions of one conversation, in the simulated shares."""


@dataclass(frozen=True)
class Kept:
    """Shares of the simulated comparisons, in per cent."""

    covered: float
    """The flips' interval held the true difference."""
    covered_t: float
    """An interval by Student's t and the clustered error did."""
    covered_naive: float
    """The interval of independent questions did."""
    power: float
    """The flips show a true difference of the size of the MDE."""


def between_variance(effect: float, sizes: Sequence[int]) -> float:
    """The variance between conversations that gives a design effect.

    The variance of the mean is SPREAD²/N + τ²·Σ n²/N², which is to be `effect` times SPREAD²/N.
    """
    total = sum(sizes)
    return (effect - 1) * SPREAD**2 * total / sum(size**2 for size in sizes)


def simulate(
    effect: float, runs: int, rng: np.random.Generator, conversations: Sequence[int] = SIZES
) -> Kept:
    """Many comparisons of two cells under one design effect, without a difference."""
    sizes = np.array(conversations)
    groups, total = len(sizes), sizes.sum()
    tau = sqrt(between_variance(effect, conversations))
    clusters = np.repeat(np.arange(groups), sizes)
    shown = detectable_difference(SPREAD * sqrt(effect / total), groups) or 0.0
    t = quantile(groups - 1, 0.975)
    counts = np.zeros(4)

    for _ in range(runs):
        noise = rng.normal(0, SPREAD, total) + rng.normal(0, tau, groups)[clusters]
        sums, mean = np.bincount(clusters, noise), noise.mean()
        se = sqrt(groups / (groups - 1) * np.square(sums - sizes * mean).sum()) / total
        found = flip_test(sums.tolist(), sizes.tolist())
        moved = flip_test((sums + shown * sizes).tolist(), sizes.tolist())
        assert found.low is not None and found.high is not None and moved.low is not None
        counts += [
            found.low <= 0 <= found.high,
            abs(mean) <= t * se,
            abs(mean) <= 1.96 * noise.std(ddof=1) / sqrt(total),
            moved.low > 0,
        ]

    return Kept(*(100 * counts / runs))


def simulate_share(
    share: float, conversations: Sequence[int], runs: int, rng: np.random.Generator
) -> float:
    """In per cent, how often the interval of a share holds the truth."""
    scale = 1 / CORRELATION - 1
    clusters = np.repeat(np.arange(len(conversations)), conversations).tolist()
    covered = 0
    for _ in range(runs):
        rates = rng.beta(share * scale, (1 - share) * scale, len(conversations))
        values: list[float] = []
        for rate, size in zip(rates, conversations, strict=True):
            values += (rng.random(size) < rate).astype(float).tolist()

        found = clustered_mean(values, clusters, is_share=True)
        assert found and found.low is not None and found.high is not None
        covered += found.low <= share <= found.high

    return 100 * covered / runs


def draw(kept: Sequence[Kept], path: Path) -> None:
    """Coverage of the two intervals against the design effect."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.axhline(95, color="#999999", linewidth=1, linestyle="--")
    axes.plot(DESIGN_EFFECTS, [row.covered for row in kept], "o-", color="#0072B2")
    axes.plot(DESIGN_EFFECTS, [row.covered_naive for row in kept], "s-", color="#D55E00")
    axes.annotate("by flipping conversations", (2.0, 97.0), color="#0072B2", fontsize=9)
    axes.annotate("questions taken for independent", (2.1, 85.5), color="#D55E00", fontsize=9)
    axes.set_xticks(DESIGN_EFFECTS)
    axes.set_ylim(60, 100)
    axes.set_xlabel("design effect: how much the questions of a conversation hang together")
    axes.set_ylabel("intervals that hold the truth, %")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)

    # Text stays text, and the same figures give the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "memeval"}):
        figure.savefig(path, metadata={"Date": None})


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table in Markdown."""
    yield f"| {' | '.join(header)} |"
    yield f"|{' ---: |' * len(header)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def shown(name: str, kept: Kept) -> list[str]:
    """A row of a table."""
    figures = [kept.covered, kept.covered_t, kept.covered_naive, kept.power]
    return [name, *(f"{figure:.1f} %" for figure in figures)]


def main() -> None:
    """Prints the tables, and draws the first where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()

    rng = np.random.default_rng(20_260_101)
    names = ["interval by flips", "t interval", "naive interval", "power at the MDE"]
    kept = [simulate(effect, options.runs, rng) for effect in DESIGN_EFFECTS]
    rows = [shown(f"{effect:.0f}", row) for effect, row in zip(DESIGN_EFFECTS, kept, strict=True)]
    print(*table(["design effect", *names], rows), "", sep="\n")

    rows = []
    for name, sizes in CONVERSATIONS.items():
        rows.append(shown(name, simulate(2.0, options.runs, rng, sizes)))

    print(*table(["conversations", *names], rows), "", sep="\n")

    rows = []
    for sizes, share in SHARES:
        covered = simulate_share(share, sizes, options.runs, rng)
        rows.append([f"{len(sizes)}", f"{100 * share:.0f} %", f"{covered:.1f} %"])

    print(*table(["conversations", "accuracy", "interval"], rows), sep="\n")
    if options.picture:
        draw(kept, options.picture)


if __name__ == "__main__":
    main()
