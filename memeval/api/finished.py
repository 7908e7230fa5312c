"""A finished run as the Python API returns it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memeval.api.arguments import check_types
from memeval.api.notebook import LONGEST_LINE, Table, runs_html
from memeval.comparison.paper.build import paper_table
from memeval.errors import UserError
from memeval.report.comparison import cells
from memeval.results.run import Run
from memeval.text.shown import one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False, eq=False)
class FinishedRun(Run):
    """A finished run that shows its figures, in a notebook as a table."""

    def __repr__(self) -> str:
        settings, header, (row,) = cells([self.summary])
        figures = list(zip(header, row, strict=True))[settings:]
        line = ", ".join(f"{name} {figure}" for name, figure in figures if figure)
        return f"{super().__repr__()}\n{one_line(line, 2 * LONGEST_LINE)}"

    def _repr_html_(self) -> str:
        return runs_html([self.summary])

    @check_types
    def table(
        self, columns: Sequence[str] = (), *, rows: Sequence[str] = (), caption: str = ""
    ) -> Table:
        """The run's figures as the table of a paper, with intervals and categories.

        `columns` are metrics and `categories`, `rows` the settings that name the run. Raises
        `UserError` for unknown names.
        """
        return Table(paper_table([self], columns, rows=rows, caption=caption))

    def plot(self) -> Figure:
        """Accuracy by category with 95 % intervals, as a figure of matplotlib; no file is written.

        Raises `UserError` if nothing was judged.
        """
        from memeval.report.plots.draw import draw_figure
        from memeval.report.plots.run import category_plot

        if all(row.accuracy is None for row in self.summary.categories):
            raise UserError(f"{one_line(self.name)} has no accuracy to plot: nothing was judged")

        return draw_figure(category_plot(self.summary))

    def to_pandas(self) -> pd.DataFrame:
        """`records()`, under the same name as in sweeps and comparisons."""
        return self.records()
