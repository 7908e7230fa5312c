"""The publisher: a process of its own that turns finished run folders into reports and MLflow runs.

MLflow takes four seconds and 170 MB to import, pyplot's relatives another second. Here that happens
on a second core, while the model calls of the cell are in flight. A run that is neither tracked nor
drawn needs neither, and its report is written in the run's own process.

The worker reads one JSON request per line. It answers each, but for the one that warms it up, with
one JSON line:

    {"warm": true, "root": …, "uri": …, "track": …, "plots": …}
    {"folder": …, "root": …, "uri": …, "track": …, "plots": …}
      ->  {"ok": true, "run_id": …, "url": …, "created": …} or {"ok": false, "error": …}
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import memeval
from memeval.cli.terminal import guard
from memeval.config.filing import Filing
from memeval.errors import MemevalError
from memeval.shown import one_line

NICENESS = 5
"""The worker gives way to the main loop where cores are few, but is not starved: beside a process
that computes it gets a quarter of a core.
"""

CLOSING_S = 0.2
"""How long a worker that is closed may take to end; an idle one takes less. One that does not is
left to itself.
"""


UNFILED = Filing()
"""The experiment of the data set, and no labels."""

LONGEST_ERROR = 1000
"""Characters of an error that are reported."""


@dataclass(frozen=True)
class PublishResult:
    """What became of one run folder. Whatever went wrong, its records are still on disk."""

    error: str | None = None
    """One line; None where all went well."""
    run_id: str | None = None
    """In MLflow; None where nothing is tracked."""
    url: str | None = None
    created: bool = False
    """False where MLflow had the run already."""
    urls: Sequence[str] = ()
    """Of the runs of sweeps that a comparison was logged to."""

    @property
    def ok(self) -> bool:
        """Whether report and tracking are complete."""
        return self.error is None


class Publisher:
    """The worker, as the pipeline sees it.

    `start` it early; a worker that died is started once more, then reported as an error.
    """

    def __init__(
        self, root: Path, uri: str | None = None, track: bool = True, plots: bool = True
    ) -> None:
        self.settings = {"root": str(root), "uri": uri, "track": track, "plots": plots}
        self.plots = plots
        self.needs_worker = track or plots
        self.process: subprocess.Popen[str] | None = None
        self.stderr: IO[str] | None = None

    def start(self) -> None:
        """Starts the worker, where one is needed, and lets it import what it will need.

        Returns at once; `publish` reports what fails.
        """
        if self.needs_worker and self.process is None:
            self.stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed with the worker
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.stderr,
                text=True,
                encoding="utf-8",
                env=environment(),
                process_group=0,
            )
            with suppress(OSError):
                self.send({"warm": True})

    def publish(self, folder: Path, filing: Filing = UNFILED) -> PublishResult:
        """Writes the folder's report and logs it.

        Returns when that is done, or has failed for good.
        """
        return self.ask({"folder": str(folder.resolve()), "filing": filing.as_request()})

    def compare(
        self, folders: Sequence[Path], plot: Path, differences: Mapping[str, Any] | None = None
    ) -> PublishResult:
        """Draws the run folders' cells into plots: `plot`, and others beside it.

        `differences` are those between the cells, as `compare.plots.as_drawn` has them.
        """
        return self.ask(
            {
                "folder": str(plot.parent),
                "plot": str(plot),
                "cells": list(map(str, folders)),
                "differences": differences,
            }
        )

    def log_comparison(self, folders: Sequence[Path], comparison: Path) -> PublishResult:
        """Logs the files of a comparison to the run of the sweep that the cells are below."""
        return self.ask(
            {
                "folder": str(comparison),
                "comparison": str(comparison),
                "cells": [str(folder.resolve()) for folder in folders],
            }
        )

    def ask(self, request: Mapping[str, Any]) -> PublishResult:
        """Sends a request, to a second worker where the first one dies over it."""
        if not self.needs_worker:
            return result_of(serve({**self.settings, **request}))

        death = ""
        for _ in range(2):
            try:
                self.start()
                return self.exchange(request)
            except (OSError, EOFError, ValueError) as error:
                death = self.bury() or f"{type(error).__name__}: {error}"

        return PublishResult(
            error=f"the publisher crashed twice on {Path(request['folder']).name}: {death}"
        )

    def exchange(self, request: Mapping[str, Any]) -> PublishResult:
        """Sends one request and waits for its answer.

        Raises OSError, EOFError or ValueError where the worker is gone or talks nonsense.
        """
        self.send(request)
        assert self.process is not None and self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith("\n"):
            raise EOFError("no answer")

        return result_of(json.loads(line))

    def send(self, request: Mapping[str, Any]) -> None:
        """Writes one request. Raises OSError where the worker is gone."""
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write(json.dumps({**self.settings, **request}) + "\n")
        self.process.stdin.flush()

    def bury(self) -> str:
        """Puts a dead or broken worker away and returns its last words."""
        process, stderr = self.process, self.stderr
        self.process = self.stderr = None
        if stderr is None:
            return ""

        with stderr:
            if process is None:
                return ""

            process.kill()
            code = process.wait()
            close_pipes(process)
            stderr.seek(0)
            words = [line.strip() for line in stderr if line.strip()]
            return f"exit status {code}" + (f", {words[-1]}" if words else "")

    def close(self) -> None:
        """Lets the worker go.

        One that is at something finishes it and ends by itself: nobody waits for it on the way out.
        """
        process, stderr = self.process, self.stderr
        if process is None or stderr is None:
            return

        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()

        try:
            process.wait(CLOSING_S)
        except subprocess.TimeoutExpired:
            process.returncode = (
                0  # it is nobody's child to wait for any more, and need not be warned about
            )
            self.process = self.stderr = None
            close_pipes(process)
            stderr.close()
        else:
            self.bury()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def result_of(answer: Mapping[str, Any]) -> PublishResult:
    """What the answer to a request says. Raises TypeError where it is not one."""
    if not answer["ok"]:
        return PublishResult(error=answer["error"])

    return PublishResult(**{name: value for name, value in answer.items() if name != "ok"})


def environment() -> dict[str, str]:
    """The worker's environment: it finds this very memeval, whatever the working directory has
    become.
    """
    package = str(Path(memeval.__file__).resolve().parents[1])
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])),
    }


def close_pipes(process: subprocess.Popen[str]) -> None:
    """Closes both ends of a worker's pipes that are ours."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def main() -> int:
    """The worker: requests in, answers out, until the requests end.

    Ctrl-C is the parent's affair.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    answers = private_stdout()
    guard()

    for line in sys.stdin:
        request = json.loads(line)
        if request.get("warm"):
            warm(request)
            continue

        try:
            answers.write(json.dumps(serve(request), ensure_ascii=False) + "\n")
            answers.flush()
        except BrokenPipeError:
            return 1

    return 0


def private_stdout() -> IO[str]:
    """Our own way to the parent; whatever else in this process writes to stdout goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def serve(request: Mapping[str, Any]) -> dict[str, Any]:
    """Publishes one run folder."""
    folder = Path(request["folder"])
    try:
        if "plot" in request:
            return compare(request)
        if "comparison" in request:
            return log_compared(request)

        from memeval.page import PAGE_FILE, write_page
        from memeval.report import write_report
        from memeval.report.stamp import stamp_report

        plots = request.get("plots", True)
        write_report(folder, plots=plots)
        write_page([folder], folder / PAGE_FILE)
        stamp_report(folder, plots=plots)
        return {"ok": True, **(log(folder, request) if request["track"] else {})}
    except OSError as error:
        path = error.filename or folder
        return {
            "ok": False,
            "error": f"{one_line(path, 500)} can't be written: {error.strerror or error}",
        }
    except MemevalError as error:
        return {"ok": False, "error": one_line(error, LONGEST_ERROR)}
    except Exception as error:  # noqa: BLE001 - a fault of ours in one report must lose neither the run nor the runs after it
        return {
            "ok": False,
            "error": f"{folder.name} could not be published: {type(error).__name__}: "
            f"{one_line(error, LONGEST_ERROR)}",
        }


def compare(request: Mapping[str, Any]) -> dict[str, Any]:
    """Draws the comparison of several cells, and how they differ."""
    from memeval.report.difference_plots import DrawnDifferences, write_difference_plots
    from memeval.report.sweep_plots import write_sweep_plots
    from memeval.results import RunSummary

    cells, plot = [RunSummary.read(Path(cell)) for cell in request["cells"]], Path(request["plot"])
    write_sweep_plots(cells, plot)
    if request["differences"]:
        drawn = DrawnDifferences.from_json(request["differences"])
        write_difference_plots(drawn, plot.parent, plot.stem.removeprefix("comparison"))

    return {"ok": True}


def log_compared(request: Mapping[str, Any]) -> dict[str, Any]:
    """Logs the files of a comparison to MLflow."""
    from memeval.tracking.store import prepare_store

    store = prepare_store(Path(request["root"]), request.get("uri"))
    from memeval.tracking.comparison import log_comparison

    cells = [Path(cell) for cell in request["cells"]]
    return {"ok": True, "urls": log_comparison(cells, Path(request["comparison"]), store)}


def log(folder: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Logs one run folder to MLflow."""
    from memeval.tracking.store import prepare_store

    store = prepare_store(Path(request["root"]), request.get("uri"))
    from memeval.tracking.log import log_run

    tracked = log_run(folder, store, Filing(**request.get("filing", {})))

    return {"run_id": tracked.run_id, "url": tracked.url, "created": tracked.created}


def warm(request: Mapping[str, Any]) -> None:
    """Loads what publishing needs, makes a missing store and opens it.

    What fails here fails again with the first run, and is reported then.
    """
    with suppress(MemevalError, OSError, ImportError):
        if request["plots"]:
            from memeval.report.canvas import warm_up

            warm_up()

        if request["track"]:
            from memeval.tracking.store import prepare_store

            store = prepare_store(Path(request["root"]), request.get("uri"))
            from memeval.tracking.log import look

            if not store.remote:
                look(store)


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(
        status
    )  # the interpreter would spend a second on taking MLflow apart, and the parent waits
