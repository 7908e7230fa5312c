"""The plots of a sweep's cells."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.report.plots.curves import curve_name, curve_plot, curves_of
from memeval.report.plots.depth import depth_plots
from memeval.report.plots.model import Plot
from memeval.report.plots.prices import differ_in, prices, sweep_plot
from memeval.report.plots.ranked import ranked_plot
from memeval.results import RunSummary


def sweep_plots(summaries: Sequence[RunSummary], suffix: str = "") -> dict[str, Plot]:
    """The plots of the cells of one data set by name: against context, by rank, against cost, over
    each number that the sweep varies, and the results of haystacks.

    `suffix` ends the names, if the sweep has several data sets.
    """
    plots = {
        f"comparison{suffix}": sweep_plot(summaries),
        f"comparison{suffix}_ranked": ranked_plot(summaries),
    }
    if differ_in(summaries, prices()["cost"]):
        plots[f"comparison{suffix}_cost"] = sweep_plot(summaries, "cost")

    for curves in curves_of(summaries):
        plots[f"{curve_name(curves.setting)}{suffix}"] = curve_plot(curves)

    return plots | depth_plots(summaries)
