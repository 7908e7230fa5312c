"""Work of the publisher's process. It loads MLflow and matplotlib when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.config.filing import Filing
from memeval.errors import MemevalError
from memeval.text.shown import one_line

if TYPE_CHECKING:
    from memeval.report.compared import ComparisonData
    from memeval.report.plots.model import Plot
    from memeval.tracking.sweep_end import SweepEnd

LONGEST_ERROR = 1000
"""Characters of an error that are reported."""


@dataclass(frozen=True)
class PublishResult:
    """The outcome of a request. Whatever went wrong, the results are still on disk."""

    error: str | None = None
    """One line; None if all went well."""
    url: str | None = None
    """In MLflow; None if nothing is tracked."""
    urls: Sequence[str] = ()
    """Of the runs of sweeps that a comparison was logged to."""
    files: Sequence[str] = ()
    """Names of the plots and pages that were made."""


def attempt(
    function: Callable[..., PublishResult], folder: Path, *arguments: object
) -> PublishResult:
    """Calls a function; an exception becomes an error on one line, which names the folder."""
    try:
        return function(folder, *arguments)
    except OSError as error:
        path = one_line(error.filename or folder, 500)
        return PublishResult(error=f"{path} can't be written: {error.strerror or error}")
    except MemevalError as error:
        return PublishResult(error=one_line(error, LONGEST_ERROR))
    except Exception as error:  # noqa: BLE001
        # A fault of ours in one report must lose neither the run nor the runs after it.
        cause = f"{type(error).__name__}: {one_line(error, LONGEST_ERROR)}"
        return PublishResult(error=f"{folder.name} could not be published: {cause}")


def report_run(folder: Path, plots: bool) -> PublishResult:
    """Writes a run folder's report, plots and page."""
    from memeval.report.markdown import write_report
    from memeval.report.page import PAGE_FILE, write_page
    from memeval.report.stamp import stamp_report

    write_report(folder, plots=plots)
    write_page([folder], folder / PAGE_FILE)
    # Last: the stamp says that they are complete.
    stamp_report(folder, plots=plots)
    return PublishResult()


def track_run(folder: Path, root: Path, uri: str | None, filing: Filing) -> PublishResult:
    """Logs a run folder to MLflow."""
    from memeval.tracking.store import prepare_store

    # A URI that can't be used is refused before MLflow is loaded for it.
    store = prepare_store(root, uri)
    from memeval.tracking.log import log_run

    return PublishResult(url=log_run(folder, store, filing).url)


def track_sweep(folder: Path, root: Path, uri: str | None, end: SweepEnd) -> PublishResult:
    """Logs the end of a sweep, whose comparison is in `folder`, to MLflow."""
    from memeval.tracking.store import prepare_store

    store = prepare_store(root, uri)
    from memeval.tracking.comparison import log_comparison

    return PublishResult(urls=log_comparison(folder, store, end))


def draw_runs(folder: Path, runs: Sequence[Path], _: None, suffix: str) -> PublishResult:
    """Draws runs side by side into the folder of a sweep."""
    from memeval.report.plots.sweep import sweep_plots
    from memeval.results import RunSummary

    summaries = [RunSummary.read(run) for run in runs]
    return draw_plots(folder, runs, sweep_plots(summaries, suffix), suffix)


def draw_plots(
    folder: Path, _: Sequence[Path], plots: Mapping[str, Plot], __: str
) -> PublishResult:
    """Draws plots of a sweep, such as those of how its runs differ, under their names."""
    from memeval.report.plots.draw import draw_all

    drawn = draw_all(plots, folder)
    names = [path.with_suffix(ending).name for path in drawn for ending in (".png", ".svg")]
    return PublishResult(files=names)


def draw_page(
    folder: Path, runs: Sequence[Path], comparison: ComparisonData, suffix: str
) -> PublishResult:
    """Writes the page of a comparison into the folder of a sweep."""
    from memeval.report.page import write_page

    page = folder / f"comparison{suffix}.html"
    write_page(runs, page, comparison)
    return PublishResult(files=[page.name])


def warm_up(root: Path, uri: str | None, track: bool, plots: bool) -> None:
    """Loads what publishing needs, makes a missing store and opens it.

    A failure here occurs again with the first run, and is reported then.
    """
    with suppress(MemevalError, OSError, ImportError):
        import memeval.report.markdown
        import memeval.report.plots.differences
        import memeval.report.plots.sweep  # noqa: F401
        from memeval.report.page.write import load_template
        from memeval.report.plots.draw import warm_up as load_fonts

        load_template()
        if plots:
            load_fonts()

        if track:
            from memeval.tracking.store import prepare_store

            store = prepare_store(root, uri)
            from memeval.tracking.log import look

            # A server that is away would hold up the first run, which waits for this process.
            if not store.remote:
                look(store)
