"""Finished cells of a sweep are published in a thread, while later ones run."""

from __future__ import annotations

import threading
from pathlib import Path
from queue import SimpleQueue

from memeval.runs.cell import publish_cell, tag_with_sweep
from memeval.runs.plan import Plan
from memeval.runs.publish.published import published_before
from memeval.runs.publish.publisher import NOT_LOGGED
from memeval.runs.publish.publishers import drawing_publishers, start_publisher
from memeval.runs.schedule import Outcome
from memeval.runs.session import DoneCell, Session


class Publishing:
    """The cells that are to be published, one after the other."""

    def __init__(self, session: Session) -> None:
        """`session` has the list that published cells are added to."""
        self._session = session
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
        self._known = published_before(
            (planned.cell for planned in plan.cells if planned.is_finished), self._session.sweep
        )
        unpublished = [planned for planned in plan.cells if planned.cell.folder not in self._known]
        for planned in unpublished:
            config = planned.cell.config
            start_publisher(config.tracking, plots=config.plots is not False)

        # Where all cells are published, their comparison has usually been drawn, too.
        draws = any(planned.cell.config.plots is not False for planned in unpublished)
        if draws and len(plan.cells) > 1:
            drawing_publishers()  # they draw the comparison at the end

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
        # First: what the thread is still publishing is noted here, and must not be noted twice.
        self._stopped = True
        left = [self._current]
        while not self._queue.empty():
            left.append(self._queue.get())

        for outcome in left:
            if outcome is not None:
                self._note(outcome, f"{NOT_LOGGED}: the sweep was stopped")

    def _work(self) -> None:
        # Now, and not after the last verdict: what the end of the sweep needs.
        import memeval.comparison.files  # noqa: F401
        from memeval.report.page.write import load_template

        load_template()
        while (outcome := self._queue.get()) is not None:
            try:
                # Kept for `close`, which can't wait for a publisher that takes its time.
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
                self._note(outcome, known)
                return

            tag_with_sweep(cell, summary)

        result = publish_cell(cell, self._session.sweep)
        if not self._stopped:
            self._note(outcome, result.shown)

    def _note(self, outcome: Outcome, published: str) -> None:
        cell = outcome.planned.cell
        self._session.note_done(
            DoneCell(
                job=outcome.planned.number,
                folder=str(cell.folder),
                reused=outcome.reused,
                published=published,
                plots=cell.config.plots is not False,
                sweep_id=self._session.tracked_sweep(cell.config),
            )
        )
