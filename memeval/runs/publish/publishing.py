"""Finished runs of a sweep are published in threads, while later ones run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from memeval.errors import MemevalError
from memeval.runs.plan import Outcome, Plan
from memeval.runs.publish.conclusion import Conclusion
from memeval.runs.publish.published import file_again, published_before
from memeval.runs.publish.publisher import (
    Publisher,
    publish_cell,
    start_drawers,
    start_publisher,
)
from memeval.runs.publish.work import PublishResult
from memeval.runs.session import Session

EVERY_S = 10.0
"""Seconds between two lines on what is left to publish."""
Job = Callable[[Publisher | None], object]
"""Work for the publisher that draws it; None takes that of the run's store."""


class Publishing:
    """The runs that are to be published: one at a time by each publisher that draws."""

    def __init__(self, session: Session) -> None:
        """`session` has the list that published runs are added to."""
        self._session = session
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._error: BaseException | None = None
        self._outcomes: list[Outcome] = []
        self._left: dict[int, Outcome] = {}
        """By number, the runs that are not in the session's list yet."""
        self._known: dict[Path, str] = {}
        """Addresses of the runs of which nothing is left to publish, by run folder."""

    def start(self, plan: Plan) -> None:
        """Lets the publishers load while the first runs are under way, and looks what is published
        already.

        Raises `UserError` for a string that is not a tracking URI.
        """
        self._known = published_before(
            (planned.cell for planned in plan.cells if planned.is_finished), self._session.sweep
        )
        unpublished = [planned for planned in plan.cells if planned.cell.folder not in self._known]
        for planned in unpublished:
            config = planned.cell.config
            start_publisher(config.tracking, plots=config.plots is not False)

        # If all runs are published, their comparison has usually been drawn, too.
        draws = any(planned.cell.config.plots is not False for planned in unpublished)
        drawers: Sequence[Publisher | None] = [None]
        if draws and len(plan.cells) > 1:
            drawers = start_drawers()

        for drawer in drawers:
            work = partial(self._work, drawer)
            thread = threading.Thread(target=work, name="memeval-publishing", daemon=True)
            thread.start()
            self._threads.append(thread)

    def add(self, outcome: Outcome) -> None:
        """Has a finished run published."""
        self._outcomes.append(outcome)
        self._left[outcome.planned.number] = outcome
        self._jobs.put(partial(self._publish, outcome))

    def wait(self, say: Callable[[str], None], every_s: float = EVERY_S) -> None:
        """Returns when all runs are published; says how many are left every now and then.

        Raises what kept one from being noted.
        """
        # The comparison is drawn while the last runs are published. What fails here fails again at
        # the end of the invocation, and is reported then.
        with suppress(MemevalError, OSError, ValueError):
            if len(self._threads) > 1:
                for drawing in self._conclusion().drawings():
                    self._jobs.put(drawing.draw)

        for _ in self._threads:
            self._jobs.put(None)

        for thread in self._threads:
            thread.join(every_s)
            while thread.is_alive():
                say(self._waiting)
                thread.join(every_s)

        if self._error is not None:
            raise self._error

    @property
    def _waiting(self) -> str:
        """Work still under way."""
        if self._left:
            return f"publishing: {len(self._left)} of {len(self._outcomes)} runs left"

        return "publishing: drawing the comparison"

    def close(self) -> None:
        """Gives up what is not published yet: the same command publishes it later."""
        for outcome in list(self._left.values()):
            self._note(outcome, PublishResult(error="the sweep was stopped"))

    def _work(self, drawer: Publisher | None) -> None:
        # Now, and not after the last verdict: what the end of the sweep needs.
        import memeval.comparison.build
        import memeval.comparison.files  # noqa: F401
        from memeval.report.page.write import load_template

        load_template()
        while (job := self._jobs.get()) is not None:
            try:
                job(drawer)
            except Exception as error:  # noqa: BLE001 - raised in the main thread
                self._error = self._error or error

    def _publish(self, outcome: Outcome, drawer: Publisher | None) -> None:
        cell, summary = outcome.planned.cell, outcome.summary
        assert summary is not None
        if outcome.reused:
            known = self._known.get(cell.folder)
            if known is not None:
                self._note(outcome, PublishResult(url=known or None))
                return

            file_again(cell, summary)

        result = publish_cell(cell, self._session.sweep, drawer)
        self._note(outcome, result)

    def _note(self, outcome: Outcome, published: PublishResult) -> None:
        # A thread may still be at a run that `close` has given up: each is noted once.
        if self._left.pop(outcome.planned.number, None) is not None:
            cell, reused = outcome.planned.cell, outcome.reused
            done = self._session.done_cell(
                outcome.planned.number,
                cell,
                reused=reused,
                url=published.url,
                not_logged=published.error,
            )
            self._session.note_done(done)

    def _conclusion(self) -> Conclusion:
        outcomes = sorted(self._outcomes, key=lambda outcome: outcome.planned.number)
        cells = [
            self._session.done_cell(
                outcome.planned.number, outcome.planned.cell, reused=outcome.reused
            )
            for outcome in outcomes
        ]
        return Conclusion.of(self._session.folder, cells)
