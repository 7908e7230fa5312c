"""Finished cells of a sweep are published in a thread, while later ones run."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from queue import SimpleQueue

from memeval.cli.cell import publish_cell, tag_with_sweep
from memeval.cli.session import (
    DoneCell,
    any_publisher,
    describe_publication,
    filing_of,
    is_grouped,
    note_done,
    start_publisher,
)
from memeval.config.paths import project_root
from memeval.pipeline.cell import Cell
from memeval.report.stamp import has_report
from memeval.results import RunSummary
from memeval.sweep.plan import Plan
from memeval.sweep.schedule import Outcome
from memeval.tracking.known import logged_before
from memeval.tracking.store import locate


class Publishing:
    """The cells that are to be published, one after the other."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Outcome | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._current: Outcome | None = None
        self._stopped = False
        self._known: dict[Path, str] = {}
        """Addresses of the runs of which nothing is left to publish, by run folder."""

    def start(self, plan: Plan) -> None:
        """Lets the publishers load while the first cells run, and looks what is published already.

        Raises `UserError` for an address that is not a tracking URI.
        """
        self._known = published_before(plan)
        unpublished = [planned for planned in plan.cells if planned.cell.folder not in self._known]
        for planned in unpublished:
            config = planned.cell.config
            start_publisher(config.tracking, plots=config.plots is not False)

        draws = any(planned.cell.config.plots is not False for planned in plan.cells)
        if draws and len(plan.cells) > 1:
            any_publisher()  # it draws the comparison at the end

        self._thread = threading.Thread(target=self._work, name="memeval-publishing", daemon=True)
        self._thread.start()

    def add(self, outcome: Outcome) -> None:
        """Has a finished cell published."""
        self._queue.put(outcome)

    def wait(self) -> None:
        """Returns when all cells are published. Raises what kept one from being noted."""
        self._queue.put(None)
        assert self._thread is not None
        self._thread.join()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Gives up what is not published yet: the same command publishes it later."""
        self._stopped = True
        left = [self._current]
        while not self._queue.empty():
            left.append(self._queue.get())

        for outcome in left:
            if outcome is not None:
                _note(outcome, "not logged: the sweep was stopped")

    def _work(self) -> None:
        while (outcome := self._queue.get()) is not None:
            try:
                self._current = outcome
                self._publish(outcome)
                self._current = None
            except Exception as error:  # noqa: BLE001 - raised in the main thread
                self._error = self._error or error

    def _publish(self, outcome: Outcome) -> None:
        cell, summary = outcome.planned.cell, outcome.summary
        assert summary is not None
        if outcome.reused:
            known = self._known.get(cell.folder)
            if known is not None:
                _note(outcome, known)
                return

            tag_with_sweep(cell, summary)

        result = publish_cell(cell)
        if not self._stopped:
            _note(outcome, describe_publication(result))


def published_before(plan: Plan) -> dict[Path, str]:
    """Addresses of the finished cells whose report and run are as they would be made now; empty
    where nothing is tracked.
    """
    known: dict[Path, str] = {}
    for store_settings, cells in _by_store(plan).items():
        folders = [cell.folder for cell in cells if is_reported(cell)]
        if store_settings is None:
            known |= dict.fromkeys(folders, "")
        else:
            filings = {
                cell.folder: filing_of(cell.config) for cell in cells if cell.folder in folders
            }
            known |= logged_before(filings, locate(project_root(), store_settings or None))

    return known


def _by_store(plan: Plan) -> dict[str | None, list[Cell]]:
    """The finished cells by the address of their store; under None those that are not tracked."""
    groups: dict[str | None, list[Cell]] = {}
    for planned in plan.cells:
        tracking = planned.cell.config.tracking
        address = tracking.uri or os.environ.get("MLFLOW_TRACKING_URI") or ""
        if planned.is_finished:
            tracked = tracking.name == "mlflow"
            groups.setdefault(address if tracked else None, []).append(planned.cell)

    return groups


def is_reported(cell: Cell) -> bool:
    """Whether a finished cell's report is there, and tagged with the sweep that asks for it."""
    try:
        summary = RunSummary.read(cell.folder)
    except (OSError, ValueError, RecursionError):
        return False

    tagged = cell.config.sweep_name in (None, summary.sweep)
    return tagged and has_report(cell.folder, plots=cell.config.plots is not False)


def _note(outcome: Outcome, published: str) -> None:
    cell = outcome.planned.cell
    note_done(
        DoneCell(
            job=outcome.planned.number,
            folder=str(cell.folder),
            reused=outcome.reused,
            published=published,
            plots=cell.config.plots is not False,
            grouped=is_grouped(cell.config),
        )
    )
