"""The plots of a sweep's cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memeval.report.plots.curves import curve_file, curve_plot, curves_of
from memeval.report.plots.depth import depth_plots
from memeval.report.plots.draw import draw
from memeval.report.plots.prices import differ_in, prices, sweep_plot
from memeval.report.plots.ranked import ranked_plot
from memeval.results import RunSummary


def write_sweep_plots(summaries: Sequence[RunSummary], path: Path) -> list[Path]:
    """Draws the cells of one data set.

    `path` is that of the plot of accuracy against context. Other plots lie beside it under names of
    their own: the cells by rank and by cost, a curve for each number that the sweep varies, and the
    results of haystacks.
    """
    drawn = [
        sweep_plot(summaries, path),
        draw(ranked_plot(summaries), path.with_name(f"{path.stem}_ranked.png")),
    ]
    if differ_in(summaries, prices()["cost"]):
        drawn.append(sweep_plot(summaries, path.with_name(f"{path.stem}_cost.png"), "cost"))

    # The cells of another data set have names of their own.
    suffix = path.stem.removeprefix("comparison")
    for curves in curves_of(summaries):
        name = Path(curve_file(curves.setting))
        drawn.append(curve_plot(curves, path.with_name(f"{name.stem}{suffix}.png")))

    return drawn + depth_plots(summaries, path.parent)
