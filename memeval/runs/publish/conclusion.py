"""The end of an invocation: its runs compared, the comparison written, drawn and logged."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Self

from memeval.config.paths import project_root
from memeval.config.schema import TrackingConfig
from memeval.errors import UserError
from memeval.report.differences import differing, labels, system_of
from memeval.results import RunSummary, read_tracked
from memeval.results.calibration import read_shown_summary
from memeval.runs.publish import work
from memeval.runs.publish.drawing import Drawing
from memeval.runs.publish.publisher import start_drawers, start_publisher, tracking_publishers
from memeval.runs.session import DoneCell
from memeval.text.names import file_name
from memeval.tracking.known import shows_comparison
from memeval.tracking.store import locate
from memeval.tracking.sweep_end import SweepEnd, short_names

if TYPE_CHECKING:
    from memeval.comparison.records import Comparison


@dataclass(frozen=True)
class Compared:
    """The runs of one data set, and how they differ."""

    folders: Sequence[Path]
    summaries: Sequence[RunSummary]
    suffix: str
    """Of the names of its files, if the sweep has several data sets."""
    comparison: Comparison | None
    """None if nothing can be compared, such as a single run."""


@dataclass(frozen=True)
class Conclusion:
    """Results of an invocation, and how its runs differ from the first of their data set."""

    folder: Path
    """The invocation's; it gets the comparison."""
    cells: Sequence[DoneCell]
    """In the sweep's order."""
    summaries: Sequence[RunSummary]
    """Theirs."""
    problems: list[str] = field(default_factory=list)
    """Why something was not compared, or not drawn; one line each."""

    @classmethod
    def of(cls, folder: Path, cells: Sequence[DoneCell]) -> Self:
        """Results of an invocation's runs, from their folders."""
        return cls(folder, cells, [read_shown_summary(Path(cell.folder)) for cell in cells])

    @cached_property
    def groups(self) -> Mapping[str, Sequence[RunSummary]]:
        """The summaries by data set."""
        from memeval.report.comparison import by_dataset

        return by_dataset(self.summaries)

    @cached_property
    def compared(self) -> list[Compared]:
        """How the runs of each data set differ from the first of them."""
        folder_of = {
            summary.run_key: Path(cell.folder)
            for cell, summary in zip(self.cells, self.summaries, strict=True)
        }
        compared = []
        for name, group in self.groups.items():
            by_folder = {folder_of[summary.run_key]: summary for summary in group}
            compared.append(
                Compared(
                    folders=list(by_folder),
                    summaries=list(by_folder.values()),
                    suffix=f"_{file_name(name)}" if len(self.groups) > 1 else "",
                    comparison=self._compare(by_folder) if len(by_folder) > 1 else None,
                )
            )

        return compared

    def _compare(self, by_folder: Mapping[Path, RunSummary]) -> Comparison | None:
        """How runs differ; None if they can't be compared."""
        from memeval.comparison.build import compare_runs
        from memeval.comparison.finding import usual_metric
        from memeval.metrics.registry import metric_named
        from memeval.results.run import Run

        runs = [Run(*pair) for pair in by_folder.items()]
        try:
            return compare_runs(runs, metric_named(usual_metric(list(by_folder.values()))))
        except UserError as error:
            # The runs are finished: what was measured is shown without a comparison.
            self.problems.append(f"not compared: {error.message}")
            return None

    def drawings(self) -> list[Drawing]:
        """Drawings of each data set for publishers: plots of the runs and of how they differ, a
        page.

        Nothing if no run is to be drawn.
        """
        from memeval.comparison.page import difference_plots, page_content

        if not any(cell.plots for cell in self.cells):
            return []

        drawings = []
        for group in self.compared:
            runs = group.folders
            draw = partial(Drawing, self.folder, runs=runs, suffix=group.suffix)
            if len(runs) > 1:
                drawings.append(draw(work.draw_runs, content=None))
            if group.comparison is None or not group.comparison.differences:
                continue

            plots = difference_plots(group.comparison, group.suffix)
            drawings.append(draw(work.draw_plots, content=plots))
            content = page_content(group.comparison, len(runs))
            if content is not None:
                drawings.append(draw(work.draw_page, content=content))

        return drawings

    def write(self, *, draws: bool) -> list[Path]:
        """Leaves the comparison in the folder as Markdown, CSV, plots and pages; returns the pages.

        Raises `StorageError`.
        """
        self._write_tables()
        drawings = self.drawings() if draws else []
        if not drawings:
            return self._write_pages()

        # Usually none is left: they were made while the last runs were published.
        left = [drawing for drawing in drawings if not drawing.copy()]
        if left:
            self._draw(left)

        pages = [self.folder / f"comparison{group.suffix}.html" for group in self.compared]
        return [page for page in pages if page.exists()]

    def _draw(self, drawings: Sequence[Drawing]) -> None:
        """Has all publishers that draw make these at once."""
        drawers = cycle(start_drawers())
        with ThreadPoolExecutor(2) as threads:
            futures = [threads.submit(drawing.draw, next(drawers)) for drawing in drawings]

        errors = dict.fromkeys(future.result() for future in futures)
        self.problems.extend(f"not drawn: {error}" for error in errors if error)

    def _write_tables(self) -> None:
        from memeval.comparison.files import write_comparisons
        from memeval.report.comparison import comparison_csv, comparison_markdown

        comparisons = [group.comparison for group in self.compared if group.comparison]
        tables = comparison_markdown(self.summaries), comparison_csv(self.summaries)
        write_comparisons(comparisons, self.folder, *tables)

    def _write_pages(self) -> list[Path]:
        from memeval.comparison.page import write_page_of

        pages = []
        for group in self.compared:
            page = self.folder / f"comparison{group.suffix}.html"
            if group.comparison and write_page_of(group.comparison, group.folders, page):
                pages.append(page)

        return pages

    def log(self) -> list[work.PublishResult]:
        """Logs the end of a sweep to every MLflow store that has its runs."""
        end = self._sweep_end()
        if end is None:
            return []

        publishers = tracking_publishers()
        if not publishers:
            # All runs were logged before, or by workers in processes of their own.
            tracking = TrackingConfig(name="mlflow")
            store = locate(project_root(), os.environ.get("MLFLOW_TRACKING_URI") or None)
            # Runs of a store that `tracking.uri` names are not in this one, which must not be made.
            is_here = any(store.name in read_tracked(run) for run in end.names)
            if not is_here or shows_comparison(end.names, end.digest, store):
                return []

            publishers = [start_publisher(tracking, plots=False)]

        return [
            publisher.ask(work.track_sweep, self.folder, publisher.root, publisher.uri, end)
            for publisher in publishers
        ]

    def _sweep_end(self) -> SweepEnd | None:
        """The end of a sweep as MLflow shows it; None if no two of its runs are tracked."""
        tracked = {Path(cell.folder): cell.sweep_id for cell in self.cells if cell.sweep_id}
        if len(tracked) < 2:
            return None

        names: dict[Path, str] = {}
        settings: dict[str, None] = {}
        for group in self.compared:
            names |= zip(group.folders, full_labels(group.summaries), strict=True)
            settings |= dict.fromkeys(differing(group.summaries))

        shown = [run for run in names if run in tracked]
        return SweepEnd(
            sweep_id=next(iter(tracked.values())),
            names=dict(zip(shown, short_names([names[run] for run in shown]), strict=True)),
            settings=list(settings),
            sentences=list(sentences_of(self.compared)),
        )


def full_labels(summaries: Sequence[RunSummary]) -> list[str]:
    """The label of each run with its system first, whether systems differ or not."""
    names = []
    for summary, label in zip(summaries, labels(summaries), strict=True):
        system = system_of(summary)
        others = [word for word in label.split() if word != system]
        names.append(" ".join([system, *others]))

    return names


def sentences_of(compared: Sequence[Compared]) -> Iterator[str]:
    """Sentences of the comparisons, after the name of the data set if there are several."""
    from memeval.comparison.sentences import findings

    comparisons = [group.comparison for group in compared if group.comparison]
    for comparison in comparisons:
        before = f"{comparison.runs[0].dataset}: " if len(comparisons) > 1 else ""
        for line in findings(comparison):
            yield f"{before}{line}"
