"""The publisher: a process that writes reports and logs runs to MLflow, and how a run asks it.

MLflow takes two seconds and 170 MB to import, matplotlib another second. In a second process that
happens while the model calls of the cell are in flight. A run that is neither tracked nor drawn
needs no such process: its report is written in the run's own.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import IO, Any

import memeval
from memeval.config.filing import Filing, read_experiment, read_filing
from memeval.config.paths import project_root
from memeval.config.schema import TrackingConfig
from memeval.display.terminal import guard
from memeval.pipeline.open.cell import Cell
from memeval.runs.publish import work
from memeval.runs.publish.work import PublishResult
from memeval.tracking.store import check_store, locate

CLOSING_S = 0.2
"""How long a process that is closed may take to end. An idle one takes less; a busy one is left to
finish its request.
"""
NICENESS = 5
"""The process gives way to the main loop if cores are few, but is not starved: beside a process
that computes it gets a quarter of a core.
"""


class Publisher:
    """The process, as a run sees it.

    `start` it early. One that died is started once more; then its death is reported as an error.
    """

    def __init__(
        self, root: Path, uri: str | None = None, track: bool = True, plots: bool = True
    ) -> None:
        self.root, self.uri, self.track, self.plots = root, uri, track, plots
        self.process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._output: IO[str] | None = None
        self._asking = threading.Lock()
        """The process answers one request at a time."""

    def start(self) -> None:
        """Starts the process, if one is needed, and lets it import what it will need.

        Returns at once; `publish` reports what fails.
        """
        if self.process is not None or not (self.track or self.plots):
            return

        self._connection, theirs = Pipe()
        # A file, and not a pipe: nobody reads along, and a full pipe would stop the process.
        self._output = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed with the process
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve({theirs.fileno()})"],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=[theirs.fileno()],
                env=environment(),
                # Ctrl-C on a terminal goes to one group: this process ends by its closed pipe.
                process_group=0,
            )

        with suppress(OSError):
            self._connection.send((self.root, self.uri, self.track, self.plots))

    def publish(
        self, folder: Path, filing: Filing, drawer: Publisher | None = None
    ) -> PublishResult:
        """Writes the folder's report and logs it; returns when that is done, or has failed.

        The report is written by `drawer`, if another publisher is to share the work.
        """
        folder = folder.resolve()
        reported = (drawer or self).ask(work.report_run, folder, self.plots)
        if reported.error is not None or not self.track:
            return reported

        return self.ask(work.track_run, folder, self.root, self.uri, filing)

    def ask(
        self, function: Callable[..., PublishResult], folder: Path, *arguments: object
    ) -> PublishResult:
        """Calls a function of `work` in the process; its first argument is what errors name."""
        if not (self.track or self.plots):
            return work.attempt(function, folder, *arguments)

        death = ""
        with self._asking:
            # Twice: a process may have been killed between two requests. One that dies twice over
            # the same request dies of it.
            for _ in range(2):
                try:
                    self.start()
                    assert self._connection is not None
                    self._connection.send((function, folder, *arguments))
                    result: PublishResult = self._connection.recv()
                    return result
                except (OSError, EOFError) as error:
                    death = self._bury() or f"{type(error).__name__}: {error}"

        return PublishResult(error=f"the publisher crashed twice on {folder.name}: {death}")

    def _bury(self) -> str:
        """Puts a dead process away and returns its last words; empty if it never started."""
        process, output = self.process, self._output
        self.process = self._output = None
        if self._connection is not None:
            self._connection.close()
        if output is None:
            return ""

        with output:
            if process is None:
                return ""

            try:
                code = process.wait(CLOSING_S)
            except subprocess.TimeoutExpired:
                process.kill()  # it is alive, and only its connection is broken
                code = process.wait()

            output.seek(0)
            words = [line.strip() for line in output if line.strip()]
            return ", ".join([f"exit status {code}", *words[-1:]])

    def close(self) -> None:
        """Lets the process go: a busy one finishes its request and then ends."""
        process, output = self.process, self._output
        if process is None or output is None or self._connection is None:
            return

        self._connection.close()
        try:
            process.wait(CLOSING_S)
        except subprocess.TimeoutExpired:
            # subprocess warns of a child that nobody waited for, and this one is left on purpose.
            process.returncode = 0

        output.close()
        self.process = self._output = None


def environment() -> dict[str, str]:
    """The process's environment: it finds this very memeval, whatever the working directory is."""
    package = str(Path(memeval.__file__).resolve().parents[1])
    paths = filter(None, [package, os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def serve(descriptor: int) -> None:
    """The process: answers requests until the connection closes."""
    # The parent acts on Ctrl-C and SIGTERM; a run folder that is being logged is logged to its end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(NICENESS)
    guard()

    connection: Connection[Any, Any] = Connection(descriptor)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        work.warm_up(*connection.recv())
        while True:
            function, *arguments = connection.recv()
            connection.send(work.attempt(function, *arguments))

    # The interpreter would spend a second on taking MLflow apart, and the parent waits.
    os._exit(0)


_publishers: dict[tuple[str, str | None, bool], Publisher] = {}
"""This process's publishers by kind of tracking, store and whether they draw."""


def start_publisher(tracking: TrackingConfig, *, plots: bool = True) -> Publisher:
    """This process's publisher for a store, started when first asked for, so that it loads while
    the cell runs.

    Raises `UserError` for a string that is not a tracking URI.
    """
    key = (tracking.name, tracking.uri, plots)
    if key not in _publishers:
        if tracking.name == "mlflow":
            read_experiment(tracking)
            uri = tracking.uri or os.environ.get("MLFLOW_TRACKING_URI")
            check_store(locate(project_root(), uri))

        publisher = Publisher(project_root(), tracking.uri, tracking.name == "mlflow", plots)
        publisher.start()
        # However this process ends, except by SIGKILL.
        atexit.register(publisher.close)
        _publishers[key] = publisher

    return _publishers[key]


def publish_cell(cell: Cell, sweep: str | None, drawer: Publisher | None = None) -> PublishResult:
    """Writes a finished cell's report, by `drawer` if there is one, and logs it."""
    publisher = start_publisher(cell.config.tracking, plots=cell.config.plots is not False)
    return publisher.publish(cell.folder, read_filing(cell.config, sweep), drawer)


def start_drawers() -> Sequence[Publisher]:
    """The publishers that draw the runs of a sweep and their comparison: one without a store, and
    one that logs as well if any run is tracked.
    """
    storeless = start_publisher(TrackingConfig(name="none"))
    drawers = [publisher for publisher in _publishers.values() if publisher.plots]
    return list(dict.fromkeys([storeless, drawers[0]]))


def tracking_publishers() -> list[Publisher]:
    """This process's publishers that log to a store, one for each store."""
    by_store = {publisher.uri: publisher for publisher in _publishers.values() if publisher.track}
    return list(by_store.values())
