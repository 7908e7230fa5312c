"""Work of the publisher's process. It loads MLflow and matplotlib when they are first needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from memeval.config.filing import Filing
from memeval.errors import MemevalError
from memeval.results.own_prices import prices_from
from memeval.text.shown import one_line
from memeval.tracking.store import TrackingStore, prepare_store

if TYPE_CHECKING:
    from memeval.tracking.sweep_end import SweepEnd

T = TypeVar("T")

LONGEST_ERROR = 1000
"""Maximum length of a reported error, in characters."""


class PublishError(Exception):
    """The reason why a result was not published, on one line. It is still on disk."""


def attempt(prices: str, function: Callable[..., T], folder: Path, *arguments: object) -> T:
    """Calls a function with the prices of a file, or none. Raises `PublishError` for any error."""
    try:
        with prices_from(prices):
            return function(folder, *arguments)
    except OSError as error:
        path = one_line(error.filename or folder, 500)
        raise PublishError(f"{path} can't be written: {error.strerror or error}") from error
    except MemevalError as error:
        raise PublishError(one_line(error, LONGEST_ERROR)) from error
    except Exception as error:
        # A bug of memeval in one report must lose neither the run nor the runs after it.
        # Some errors, such as `MemoryError`, say nothing.
        cause = f"{type(error).__name__}: {one_line(error, LONGEST_ERROR)}".removesuffix(": ")
        raise PublishError(f"{folder.name} could not be published: {cause}") from error


def report_run(folder: Path, plots: bool) -> None:
    """Writes a run folder's report, plots and page."""
    from memeval.report.markdown import write_report
    from memeval.report.page import write_page
    from memeval.report.stamp import PAGE_FILE, stamp_report

    write_report(folder, plots=plots)
    write_page([folder], folder / PAGE_FILE)
    # Last: the stamp marks the files as complete.
    stamp_report(folder, plots=plots)


def track_run(folder: Path, store: TrackingStore, filing: Filing) -> str:
    """Logs a run folder to MLflow, and returns its URL there."""
    # A store that can't be used is refused before MLflow is loaded for it.
    prepare_store(store)
    from memeval.tracking.log import log_run

    return log_run(folder, store, filing).url


def track_sweep(folder: Path, store: TrackingStore, end: SweepEnd) -> list[str]:
    """Logs the end of a sweep, whose comparison is in `folder`, and returns the URLs."""
    prepare_store(store)
    from memeval.tracking.comparison import log_comparison

    return log_comparison(folder, store, end)


def warm_up(store: TrackingStore | None, plots: bool) -> None:
    """Loads the modules for publishing, creates a missing store and opens it.

    A failure here occurs again with the first run, and is reported then.
    """
    with suppress(MemevalError, OSError, ImportError):
        import genai_prices  # noqa: F401 - pages show what each answer cost

        import memeval.report.markdown  # noqa: F401
        from memeval.report.page.write import load_template

        load_template()
        if plots:
            from memeval.report.plots.draw import warm_up as load_fonts

            load_fonts()

        if store is not None:
            prepare_store(store)
            from memeval.tracking.log import open_early

            # A server that is down would delay the first run, which waits for this process.
            if not store.remote:
                open_early(store)
