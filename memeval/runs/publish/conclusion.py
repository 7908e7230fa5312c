"""The end of an invocation: compares its runs, and writes, draws and logs the comparison."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memeval.comparison.records import Comparison
from memeval.errors import UserError
from memeval.process.root import project_root
from memeval.report.differences import differing_settings, labels, system_of
from memeval.report.plots.model import Plot
from memeval.results import RunSummary, read_tracked
from memeval.results.calibration import read_shown_summary
from memeval.results.run import Run
from memeval.runs.invocation import DoneCell
from memeval.runs.publish.pictures import SweepPicture
from memeval.runs.publish.publisher import (
    Publisher,
    PublishError,
    start_drawers,
    start_publisher,
    track_sweep,
    tracking_publishers,
)
from memeval.text.names import file_name
from memeval.tracking.known import shows_comparison
from memeval.tracking.store import locate
from memeval.tracking.sweep_end import SweepEnd, short_names


class ComparedRuns(Struct, frozen=True):
    """The runs of one data set, and their differences."""

    runs: Sequence[Run]
    suffix: str
    """Suffix of its files' names; empty unless the sweep has several data sets."""
    comparison: Comparison | None = None
    """None if nothing can be compared, such as a single run."""
    problem: str | None = None
    """The reason why nothing can be compared, on one line."""

    @property
    def summaries(self) -> Sequence[RunSummary]:
        return [run.summary for run in self.runs]


class Conclusion(Struct, frozen=True):
    """The results of an invocation, and how its runs differ from the first of their data set."""

    folder: Path
    """The invocation's folder, where the comparison is written."""
    cells: Sequence[DoneCell]
    """In the sweep's order."""
    summaries: Sequence[RunSummary]
    """The summaries of these cells' runs."""
    compared: Sequence[ComparedRuns]

    @property
    def distinct(self) -> Sequence[RunSummary]:
        """The summaries, each run once: cells that no setting distinguishes are one run."""
        return list({summary.run_key: summary for summary in self.summaries}.values())

    @property
    def comparisons(self) -> Sequence[Comparison]:
        return [group.comparison for group in self.compared if group.comparison]

    def write(self, *, draws: bool) -> tuple[list[Path], list[str]]:
        """Writes the comparison into the folder as Markdown, CSV, plots and pages; returns the
        pages, and the reasons for missing drawings. Raises `StorageError`.
        """
        from memeval.comparison.files import write_comparisons
        from memeval.comparison.page import MAX_CELLS
        from memeval.report.comparison import comparison_csv, comparison_markdown

        tables = comparison_markdown(self.distinct), comparison_csv(self.distinct)
        write_comparisons(self.comparisons, self.folder, *tables)
        problems = self.draw(plots=draws)
        pages = [self.folder / f"comparison{group.suffix}.html" for group in self.compared]
        if any(len(group.runs) > MAX_CELLS for group in self.compared):
            choose = "to compare some:  python -m memeval compare system=bm25,rag"
            problems.append(f"no page: it would show more than {MAX_CELLS} runs; {choose}")

        return list(filter(Path.exists, pages)), problems

    def draw(self, *, plots: bool = True) -> list[str]:
        """Draws the missing pictures; returns the reasons for failures."""
        plots = plots and any(cell.plots for cell in self.cells)
        pictures = self._pictures(plots=plots)
        missing = [picture for picture in pictures if not picture.copy(self.folder)]
        if not missing:
            return []

        drawers = start_drawers() if plots else [Publisher(None, plots=False)]
        # All drawers take pictures from the same iterator: one that still logs runs draws fewer.
        remaining = iter(missing)

        def draw_remaining(drawer: Publisher) -> list[BaseException | None]:
            errors = []
            for picture in remaining:
                drawing = drawer.submit(picture.draw, self.folder, picture.mark)
                errors.append(drawing.exception())

            return errors

        with ThreadPoolExecutor(len(drawers)) as threads:
            errors = list(chain.from_iterable(threads.map(draw_remaining, drawers)))

        return [f"not drawn: {error}" for error in dict.fromkeys(map(str, filter(None, errors)))]

    def _pictures(self, *, plots: bool) -> list[SweepPicture]:
        from memeval.comparison.page import difference_plots, page_content
        from memeval.report.plots.sweep import sweep_plots

        pictures = []
        for group in self.compared:
            group_plots: dict[str, Plot] = {}
            if plots and len(group.runs) > 1:
                group_plots |= sweep_plots(group.summaries, group.suffix)
            if plots and group.comparison:
                group_plots |= difference_plots(group.comparison, group.suffix)

            pictures += [SweepPicture(*named) for named in group_plots.items()]
            if group.comparison:
                content = page_content(group.comparison, len(group.runs))
                folders = [run.folder for run in group.runs]
                if content is not None:
                    pictures.append(SweepPicture(f"comparison{group.suffix}", content, folders))

        return pictures

    def log(self) -> tuple[list[str], list[str]]:
        """Logs the end of a sweep to every MLflow store that has its runs; returns the URLs, and
        the reasons for failures.
        """
        urls: list[str] = []
        problems: list[str] = []
        end = self._sweep_end()
        if end is None:
            return urls, problems

        for publisher in tracking_publishers() or _publishers_of(end):
            try:
                urls += publisher.submit(track_sweep, self.folder, publisher.store, end).result()
            except PublishError as error:
                problems.append(str(error))

        return urls, problems

    def _sweep_end(self) -> SweepEnd | None:
        """The end of a sweep, for MLflow; None if fewer than two of its runs are tracked."""
        tracked = {Path(cell.folder): cell.sweep_id for cell in self.cells if cell.sweep_id}
        if len(tracked) < 2:
            return None

        names: dict[Path, str] = {}
        settings: dict[str, None] = {}
        for group in self.compared:
            folders = [run.folder for run in group.runs]
            names |= zip(folders, full_labels(group.summaries), strict=True)
            settings |= dict.fromkeys(differing_settings(group.summaries))

        shown = [run for run in names if run in tracked]
        return SweepEnd(
            sweep_id=next(iter(tracked.values())),
            names=dict(zip(shown, short_names([names[run] for run in shown]), strict=True)),
            settings=list(settings),
            sentences=list(sentences_of(self.comparisons)),
        )


_last: dict[Path, Conclusion] = {}
"""By folder, the last conclusion of an invocation: its comparison is drawn while runs are still
published, and shown when all are.
"""


def conclude(folder: Path, cells: Sequence[DoneCell]) -> Conclusion:
    """Compares the runs of an invocation; `folder` is its own."""
    runs = []
    for cell in cells:
        folder_of_run = Path(cell.folder)
        runs.append(Run(folder_of_run, read_shown_summary(folder_of_run)))

    summaries = [run.summary for run in runs]
    earlier = _last.get(folder)
    if earlier is not None and earlier.summaries == summaries:
        return replace(earlier, cells=cells)

    _last[folder] = Conclusion(folder, cells, summaries, compare_groups(runs))
    return _last[folder]


def compare_groups(runs: Sequence[Run]) -> list[ComparedRuns]:
    """The differences of the runs of each data set from the first of them."""
    from memeval.report.comparison import by_dataset

    by_key = {run.key: run for run in runs}
    groups = by_dataset([run.summary for run in by_key.values()])
    compared = []
    for name, summaries in groups.items():
        suffix = ""
        if len(groups) > 1:
            suffix = f"_{file_name(name)}"

        own_runs = [by_key[summary.run_key] for summary in summaries]
        compared.append(compare_group(ComparedRuns(own_runs, suffix)))

    return compared


def compare_group(group: ComparedRuns) -> ComparedRuns:
    """The runs with their comparison, or the reason why it is missing."""
    from memeval.comparison.build import compare_runs
    from memeval.comparison.finding import usual_metric
    from memeval.metrics.registry import metric_named

    if len(group.runs) < 2:
        return group

    try:
        metric = metric_named(usual_metric(group.summaries))
        return replace(group, comparison=compare_runs(group.runs, metric))
    except UserError as error:
        # The runs are finished: their figures are shown without a comparison.
        return replace(group, problem=f"not compared: {error.message}")


def _publishers_of(end: SweepEnd) -> list[Publisher]:
    """A publisher for a sweep whose runs were all logged before, or by workers in other processes;
    none if nothing is left to log.
    """
    store = locate(project_root())
    # Runs in the store of `tracking.uri` are not in this one, which must not be created then.
    is_here = any(store.name in read_tracked(run) for run in end.names)
    if not is_here or shows_comparison(end.names, end.digest, store):
        return []

    return [start_publisher(store, plots=False)]


def full_labels(summaries: Sequence[RunSummary]) -> list[str]:
    """The label of each run with its system first, whether systems differ or not."""
    names = []
    for summary, label in zip(summaries, labels(summaries), strict=True):
        system = system_of(summary)
        others = [word for word in label.split() if word != system]
        names.append(" ".join([system, *others]))

    return names


def sentences_of(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Sentences of the comparisons, each after the name of its data set if there are several."""
    from memeval.comparison.sentences import findings

    for comparison in comparisons:
        before = ""
        if len(comparisons) > 1:
            before = f"{comparison.runs[0].dataset}: "

        for line in findings(comparison):
            yield f"{before}{line}"
