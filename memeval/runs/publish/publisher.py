"""The publisher: a process that writes reports, draws, and logs runs to MLflow.

MLflow takes two seconds and 170 MB to import, matplotlib another second. In a separate process that
happens while the model calls of a run are in flight. This module is in both processes: functions
that need these packages load them. A run that is neither tracked nor drawn needs no such process:
its report is written here. A program that has added a metric does everything here, because another
process would not know the metric.
"""

import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import memeval
from memeval.config.filing import Filing, read_experiment, read_filing
from memeval.config.schema import RunConfig
from memeval.errors import MemevalError
from memeval.metrics.registry import is_extended
from memeval.pipeline.open.cell import Cell
from memeval.process.root import project_root
from memeval.results.own_prices import prices_file, prices_from
from memeval.runs.display.terminal import guard
from memeval.runs.interrupt import JOB_SIGNALS, SIGNALS
from memeval.text.shown import one_line
from memeval.tracking.store import TrackingStore, check_store, locate, prepare_store

if TYPE_CHECKING:
    from memeval.tracking.sweep_end import SweepEnd

T = TypeVar("T")

PUBLISHING = "publishing …"
"""Progress line before a wait of several seconds."""
THREAD = "memeval-publishing"
"""Name of the threads that wait for a process. They hold no lock unless they do its work."""
CLOSING_S = 0.2
"""Time limit for a closed process to end. A busy one ends later, after its request."""
NICENESS = 5
"""The process gives way to the main loop if cores are few, but is not starved: it gets a quarter of
a core that it shares with a computing process.
"""
LONGEST_ERROR = 1000
"""Maximum length of a reported error, in characters."""


class PublishError(Exception):
    """The reason why a result was not published, on one line. It is still on disk."""


class Publisher:
    """Handle of the publisher's process. `start` it early: it loads while a run is under way."""

    def __init__(self, store: TrackingStore | None, *, plots: bool = True) -> None:
        """Without a `store` nothing is logged; without `plots` as well, no process is needed."""
        self.store, self.plots = store, plots
        self.process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._thread = ThreadPoolExecutor(1, THREAD)
        """A single thread: the process handles one request at a time."""

    @property
    def _works_here(self) -> bool:
        return is_extended() or not (self.store or self.plots)

    def start(self) -> None:
        """Starts the process, if one is needed, and returns immediately."""
        if self.process is not None or self._works_here:
            return

        self._connection, theirs = Pipe()
        # Imports this copy of memeval from any working directory.
        package = str(Path(memeval.__file__).resolve().parents[1])
        paths = filter(None, [package, os.environ.get("PYTHONPATH")])
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve({theirs.fileno()})"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                # Its own group gets no Ctrl-C from a terminal: it ends when its pipe is closed.
                process_group=0,
            )

        with suppress(OSError):
            self._connection.send((self.store, self.plots))

    def submit(self, function: Callable[..., T], folder: Path, *arguments: object) -> Future[T]:
        """Calls a function in the process. The future may raise `PublishError`."""
        return self._thread.submit(self._ask, prices_file(), function, folder, *arguments)

    def publish(
        self, folder: Path, filing: Filing, *, plots: bool = True, drawer: Self | None = None
    ) -> Future[str | None]:
        """Writes a run folder's report, in the process of `drawer` if given, and logs the run.

        Returns its URL in MLflow, or None if nothing is tracked. The future may raise
        `PublishError`.
        """
        prices, folder, store = prices_file(), folder.resolve(), self.store
        report: Future[str | None] = (drawer or self).submit(report_run, folder, plots)
        if store is None:
            return report

        def log() -> str:
            report.result()
            return self._ask(prices, track_run, folder, store, filing)

        return self._thread.submit(log)

    def _ask(self, prices: str, function: Callable[..., T], folder: Path, *arguments: object) -> T:
        if self._works_here:
            return attempt(prices, function, folder, *arguments)

        death = ""
        # Twice: a process may have been killed between two requests. If it dies twice on the same
        # request, the request is the cause.
        for _ in range(2):
            try:
                self.start()
                assert self._connection is not None
                self._connection.send((prices, function, folder, *arguments))
                reply = self._connection.recv()
            except (OSError, EOFError) as error:
                death = self._end() or str(error) or repr(error)
                continue

            if isinstance(reply, PublishError):
                raise reply

            result: T = reply
            return result

        raise PublishError(f"the publisher crashed twice on {folder.name}: {death}")

    def close(self) -> None:
        """Ends the process without waiting: a busy one finishes its request first."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._end()

    def _end(self) -> str:
        """Closes the connection, which ends the process; returns how it ended."""
        process, self.process = self.process, None
        if self._connection is not None:
            self._connection.close()
        if process is None:
            return ""

        try:
            return f"exit status {process.wait(CLOSING_S)}"
        except subprocess.TimeoutExpired:
            # subprocess warns about unawaited children; this one is left running on purpose.
            process.returncode = 0
            return ""


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


def track_sweep(folder: Path, store: TrackingStore, end: "SweepEnd") -> list[str]:
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


def serve(descriptor: int) -> None:
    """Main function of the process: answers requests until the connection closes."""
    # The parent acts on signals; this process completes the run that it is logging.
    for number in (*SIGNALS, *JOB_SIGNALS):
        signal.signal(number, signal.SIG_IGN)

    os.nice(NICENESS)
    guard()

    connection: Connection[Any, Any] = Connection(descriptor)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        warm_up(*connection.recv())
        while True:
            request = connection.recv()
            try:
                connection.send(attempt(*request))
            except PublishError as error:
                connection.send(error)

    # A regular exit would spend a second on tearing down MLflow, while the parent waits.
    os._exit(0)


_publishers: dict[TrackingStore | bool, Publisher] = {}
"""This process's publishers by their stores; those without a store by whether they draw."""
# A forked child does not have their threads, so it starts its own publishers.
os.register_at_fork(after_in_child=_publishers.clear)


def start_publisher(store: TrackingStore | None, *, plots: bool = True) -> Publisher:
    """This process's publisher for a store, started on first use.

    Raises `UserError` for another program's database.
    """
    key = store or plots
    if key not in _publishers:
        if store is not None:
            check_store(store)

        publisher = Publisher(store, plots=plots)
        publisher.start()
        # However this process ends, except by SIGKILL.
        atexit.register(publisher.close)
        _publishers[key] = publisher

    return _publishers[key]


def publisher_of(config: RunConfig) -> Publisher:
    """The publisher of a run. Raises `UserError` for an unusable store or experiment."""
    store, tracking = None, config.tracking
    if tracking.name == "mlflow":
        read_experiment(tracking)
        store = locate(project_root(), tracking.uri)

    return start_publisher(store, plots=config.plots is not False)


def publish_cell(cell: Cell, sweep: str | None) -> Future[str | None]:
    """Publishes a finished cell: writes its report, in the publisher without a store if one draws,
    and logs it. The future has its URL.
    """
    config = cell.config
    publisher, filing = publisher_of(config), read_filing(config, sweep)
    plots = config.plots is not False
    return publisher.publish(cell.folder, filing, plots=plots, drawer=_publishers.get(True))


def start_drawers() -> Sequence[Publisher]:
    """The publishers that draw the runs of a sweep and their comparison: one without a store, and
    one that logs as well if any run is tracked.
    """
    return [start_publisher(None), *tracking_publishers()][:2]


def tracking_publishers() -> list[Publisher]:
    """This process's publishers that log to a store, one for each store."""
    return [publisher for publisher in _publishers.values() if publisher.store]
