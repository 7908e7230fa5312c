"""The end of an invocation: its runs compared, the comparison written, drawn and logged."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.config.paths import outputs_dir
from memeval.errors import UserError
from memeval.results import RunSummary
from memeval.results.calibration import read_shown_summary
from memeval.runs.publish.comparison_page import write_page_of
from memeval.runs.publish.drawings import copy_drawn, draw_cells
from memeval.runs.publish.publishers import drawing_publishers
from memeval.runs.publish.sweep_end import Compared, Logged, log_sweep_end
from memeval.runs.session import DoneCell, Session
from memeval.text.names import file_name

if TYPE_CHECKING:
    from memeval.comparison import Comparison


@dataclass(frozen=True)
class Conclusion:
    """What an invocation left, and how its runs differ from the first of their data set."""

    session: Session
    cells: Sequence[DoneCell]
    """In the sweep's order."""
    summaries: Sequence[RunSummary]
    """Theirs."""
    problems: list[str] = field(default_factory=list)
    """Why something was not compared, or not drawn; one line each."""

    @property
    def folder(self) -> Path:
        """The invocation's folder, which has the comparison."""
        return self.session.folder

    @cached_property
    def groups(self) -> Mapping[str, Sequence[RunSummary]]:
        """The summaries by data set."""
        from memeval.report.comparison import by_dataset

        return by_dataset(self.summaries)

    @cached_property
    def compared(self) -> list[Compared]:
        """How the cells of each data set differ from the first of them."""
        compared = []
        for name, group in self.groups.items():
            by_folder = {outputs_dir() / "runs" / summary.run_key: summary for summary in group}
            comparison = self._compare(by_folder) if len(by_folder) > 1 else None
            suffix = f"_{file_name(name)}" if len(self.groups) > 1 else ""
            compared.append(Compared(list(by_folder), suffix, comparison))

        return compared

    def _compare(self, by_folder: Mapping[Path, RunSummary]) -> Comparison | None:
        """How runs differ; None if they can't be compared."""
        from memeval.comparison import FinishedRun, compare_runs, metric_named
        from memeval.comparison.finding import usual_metric

        runs = [FinishedRun(folder, summary) for folder, summary in by_folder.items()]
        try:
            return compare_runs(runs, metric_named(usual_metric(list(by_folder.values()))))
        except UserError as error:
            # The cells are finished: what was measured is shown without a comparison.
            self.problems.append(f"not compared: {error.message}")
            return None

    def write(self, *, draws: bool) -> list[Path]:
        """Leaves the comparison in the folder as Markdown, CSV, plots and pages; returns the pages.

        Raises `StorageError`.
        """
        self._write_tables()
        is_drawn = draws and any(cell.plots for cell in self.cells)
        with self._drawing(self.compared if is_drawn else []):
            return self._write_pages()

    def log(self) -> Logged:
        """Logs the end of a sweep to every store that has its cells."""
        return log_sweep_end(self.cells, self.compared, self.folder)

    def _write_tables(self) -> None:
        from memeval.comparison.files import comparison_markdown as differences_markdown
        from memeval.comparison.files import data_files, write_texts
        from memeval.report.comparison import comparison_csv, comparison_markdown

        comparisons = [group.comparison for group in self.compared if group.comparison]
        parts = [comparison_markdown(self.summaries), *map(differences_markdown, comparisons)]
        texts = {
            "comparison.md": "\n".join(parts),
            "comparison.csv": comparison_csv(self.summaries),
        }
        if comparisons:
            texts |= data_files(comparisons)

        write_texts(texts, self.folder)

    def _write_pages(self) -> list[Path]:
        pages = []
        for group in self.compared:
            page = self.folder / f"comparison{group.suffix}.html"
            if group.comparison and write_page_of(group.comparison, group.folders, page):
                pages.append(page)

        return pages

    @contextmanager
    def _drawing(self, compared: Sequence[Compared]) -> Iterator[None]:
        """Has publishers draw the cells while this process writes their page: on two cores the end
        of a sweep takes half as long.
        """
        several = [group for group in compared if len(group.folders) > 1]
        if not several:
            yield
            return

        problems: list[str] = []

        def draw() -> None:
            from memeval.comparison.plots import as_drawn

            for group in several:
                differences = as_drawn(group.comparison).to_json() if group.comparison else None
                plot = self.folder / f"comparison{group.suffix}.png"
                if copy_drawn(group.folders, plot, differences):
                    continue

                errors = draw_cells(drawing_publishers(), group.folders, plot, differences)
                problems.extend(f"not drawn: {error}" for error in errors)

        thread = threading.Thread(target=draw, name="memeval-drawing")
        thread.start()
        try:
            yield
        finally:
            thread.join()

        self.problems.extend(dict.fromkeys(problems))


def conclusion_of(session: Session) -> Conclusion:
    """What the cells of an invocation left."""
    cells = session.done_cells()
    summaries = [read_shown_summary(Path(cell.folder)) for cell in cells]
    return Conclusion(session, cells, summaries)
