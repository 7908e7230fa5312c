"""Plots in a notebook, without a file."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

from memeval.report.plots.draw import draw_figure
from memeval.report.plots.model import Plot


class InlineFigure(Figure):
    """A figure that a notebook shows although pyplot never saw it."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


def inline_figure(plot: Plot) -> Figure:
    """A plot as a figure of matplotlib that a notebook shows, and that `savefig` writes."""
    return draw_figure(plot, InlineFigure)
