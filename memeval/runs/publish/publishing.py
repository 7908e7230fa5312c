"""Publishes the finished runs of a sweep while later ones run."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

from msgspec import structs

from memeval.config.filing import Filing, read_filing
from memeval.errors import StorageError
from memeval.pipeline.measure.provenance import own_tags
from memeval.pipeline.open.cell import Cell
from memeval.process.root import project_root
from memeval.report.stamp import has_report
from memeval.results import RunSummary
from memeval.results.files import writing
from memeval.runs.invocation import DoneCell, Invocation
from memeval.runs.plan import CellOutcome, Plan
from memeval.runs.publish.conclusion import conclude
from memeval.runs.publish.publisher import (
    PUBLISHING,
    PublishError,
    publish_cell,
    publisher_of,
    start_drawers,
)
from memeval.text.shown import counted
from memeval.tracking.known import logged_urls
from memeval.tracking.store import TrackingStore, locate

EVERY_S = 10.0
"""Seconds between two lines on the number of runs left to publish."""

SOON_S = 1.0
"""Seconds until the first line on the drawing of the comparison."""


class Publishing:
    """Publishes the runs of a sweep, and collects the outcomes of its cells."""

    def __init__(self, invocation: Invocation) -> None:
        """Published runs, and failures, are added to the lists of `invocation`."""
        self._invocation = invocation
        self.outcomes: dict[int, CellOutcome] = {}
        """By their numbers in the sweep."""
        self._runs: dict[int, Future[str | None]] = {}
        """The URLs of the finished ones in MLflow, by the same numbers."""
        self._known_urls: dict[Path, str] = {}
        """URLs of the runs that are fully published already, by run folder."""

    def start(self, plan: Plan) -> None:
        """Starts the publishers, which load while the first runs are under way, and finds the runs
        already published.

        Raises `UserError` for a string that is not a tracking URI.
        """
        finished = [planned.cell for planned in plan.cells if planned.is_finished]
        self._known_urls = find_published(finished, self._invocation.sweep)
        publishes = draws = False
        for planned in plan.cells:
            if planned.cell.folder not in self._known_urls:
                publisher_of(planned.cell.config)
                publishes = True
                draws = draws or planned.cell.config.plots is not False

        if len(plan.cells) < 2:
            return

        # If all runs are published, their comparison has usually been drawn, too.
        if draws:
            start_drawers()

        # Now, in a thread: after the last verdict, the user would wait for it.
        writes_pages = publishes and not draws
        Thread(target=preload_conclusion, args=(writes_pages,), daemon=True).start()

    def add(self, outcome: CellOutcome) -> None:
        """Starts to publish a finished run; notes a failure."""
        number = outcome.planned.number
        self.outcomes[number] = outcome
        if outcome.summary is not None:
            self._runs[number] = self._publish(outcome)
        elif outcome.failure is not None:
            self._invocation.note_failed(outcome.failure)

    def stop(self, outcome: CellOutcome) -> None:
        """Notes the failure that ended the sweep, even if its cell has an outcome already."""
        self.outcomes.setdefault(outcome.planned.number, outcome)
        if outcome.failure is not None:
            self._invocation.note_failed(outcome.failure)

    def _publish(self, outcome: CellOutcome) -> Future[str | None]:
        cell, summary = outcome.planned.cell, outcome.summary
        assert summary is not None
        if not outcome.reused:
            return publish_cell(cell, self._invocation.sweep)

        published: Future[str | None] = Future()
        try:
            filed = structs.replace(outcome, summary=refile(cell, summary))
            self.outcomes[outcome.planned.number] = filed
            if cell.folder not in self._known_urls:
                return publish_cell(cell, self._invocation.sweep)

            published.set_result(self._known_urls[cell.folder] or None)
        except StorageError as error:
            published.set_exception(PublishError(str(error)))

        return published

    def wait(self, say: Callable[[str], None], every_s: float = EVERY_S) -> None:
        """Waits until all runs are published; reports the remaining number from time to time."""
        drawing = Thread(target=self._draw, daemon=True)
        drawing.start()
        pending = set(self._runs.values())
        if not all(future.done() for future in pending):
            say(PUBLISHING)

        runs = counted(len(self._runs), "run")
        while pending := wait(pending, every_s).not_done:
            say(f"publishing: {len(pending):,} of {runs} left")

        drawing.join(min(every_s, SOON_S))
        while drawing.is_alive():
            say("publishing: drawing the comparison")
            drawing.join(every_s)

    def close(self) -> None:
        """Records whether each run was published. The same command publishes the others."""
        for number, future in self._runs.items():
            url, problem = None, None
            try:
                if future.cancel() or not future.done():
                    problem = "the command was stopped"
                else:
                    url = future.result()
            except PublishError as error:
                problem = str(error)

            self._invocation.note_done(self._done_cell(self.outcomes[number], url, problem))

    def _done_cell(
        self, outcome: CellOutcome, url: str | None = None, problem: str | None = None
    ) -> DoneCell:
        cell, sweep_id = outcome.planned.cell, None
        if cell.config.tracking.name != "none":
            sweep_id = read_filing(cell.config, self._invocation.sweep).sweep_id

        return DoneCell(
            job=outcome.planned.number,
            folder=str(cell.folder),
            reused=outcome.reused,
            plots=cell.config.plots is not False,
            url=url,
            not_logged=problem,
            sweep_id=sweep_id,
        )

    def _draw(self) -> None:
        """Draws the comparison while the last runs are published."""
        if len(self._runs) < 2:
            return

        # An error here occurs again at the end of the invocation, and is reported then.
        with suppress(Exception):
            cells = [self._done_cell(self.outcomes[number]) for number in sorted(self._runs)]
            conclude(self._invocation.folder, cells).draw()


def preload_conclusion(writes_pages: bool) -> None:
    """Loads the modules that the end of a sweep needs. If plots are drawn, another process writes
    the pages."""
    import memeval.comparison.build
    import memeval.comparison.files
    import memeval.report.plots.sweep  # noqa: F401

    if writes_pages:
        from memeval.report.page.write import load_template

        load_template()


def find_published(cells: Iterable[Cell], sweep: str | None) -> dict[Path, str]:
    """URLs in MLflow, by run folder, of the finished cells whose report and run are up to date; an
    empty URL if a cell is not tracked. `sweep` is the digest of the sweep's overrides. MLflow is
    not loaded.

    Raises `UserError` for a string that is not a tracking URI.
    """
    urls: dict[Path, str] = {}
    by_store: dict[TrackingStore, dict[Path, Filing]] = {}
    for cell in filter(is_reported, cells):
        tracking = cell.config.tracking
        if tracking.name == "none":
            urls[cell.folder] = ""
            continue

        filings = by_store.setdefault(locate(project_root(), tracking.uri), {})
        filings[cell.folder] = read_filing(cell.config, sweep)

    for store, filings in by_store.items():
        urls |= logged_urls(filings, store)

    return urls


def is_reported(cell: Cell) -> bool:
    """Whether a finished cell's report is up to date, and tagged with the sweep requesting it."""
    try:
        summary = RunSummary.read(cell.folder)
    except (OSError, ValueError, RecursionError):
        return False

    # `run.json` names the sweep: a new sweep that requests the run rewrites it, then the report.
    tagged = cell.config.sweep_name in (None, summary.sweep)
    return tagged and has_report(cell.folder, plots=cell.config.plots is not False)


def refile(cell: Cell, summary: RunSummary) -> RunSummary:
    """A finished run's summary, stored with the sweep and the tags of the current request."""
    tags = own_tags(cell.config)
    sweep = cell.config.sweep_name or summary.sweep
    if sweep is not None:
        tags["sweep"] = sweep

    filed = replace(summary, sweep=sweep, tags={**summary.tags, **tags})
    if filed == summary:
        return summary

    with writing(cell.folder):
        filed.write(cell.folder)

    return filed
