"""The publisher, as a run sees it: it sends finished run folders to a process of its own, which
makes reports and MLflow runs of them.

MLflow takes four seconds and 170 MB to import, pyplot's relatives another second. There that
happens on a second core, while the model calls of the cell are in flight. A run that is neither
tracked nor drawn needs neither, and its report is written in the run's own process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import memeval
from memeval.config.filing import Filing
from memeval.runs.publish import worker
from memeval.tracking.sweep_end import SweepEnd

NOT_LOGGED = "not logged"
CLOSING_S = 0.2
"""How long a worker that is closed may take to end; an idle one takes less. One that does not is
left to itself.
"""


UNFILED = Filing()
"""The experiment of the data set, and no labels."""


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

    @property
    def shown(self) -> str:
        """The run's address, or why there is none."""
        return (self.url or "") if self.ok else f"{NOT_LOGGED}: {self.error}"


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
        self._asking = threading.Lock()
        """The worker answers one request at a time."""

    def start(self) -> None:
        """Starts the worker, where one is needed, and lets it import what it will need.

        Returns at once; `publish` reports what fails.
        """
        if self.needs_worker and self.process is None:
            # A file, and not a pipe: nobody reads along, and a full pipe would stop the worker.
            self.stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed with the worker
            self.process = subprocess.Popen(
                [sys.executable, "-m", worker.__name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.stderr,
                text=True,
                encoding="utf-8",
                env=environment(),
                # Ctrl-C on a terminal goes to one group: this process ends by its closed pipe.
                process_group=0,
            )
            with suppress(OSError):
                self.send({"warm": True})

    def publish(self, folder: Path, filing: Filing = UNFILED) -> PublishResult:
        """Writes the folder's report and logs it.

        Returns when that is done, or has failed for good.
        """
        return self.ask({"folder": str(folder.resolve()), "filing": filing.as_request()})

    def draw_cells(self, folders: Sequence[Path], plot: Path) -> PublishResult:
        """Draws the run folders' cells into plots: `plot`, and others beside it."""
        cells = list(map(str, folders))
        return self.ask({"folder": str(plot.parent), "plot": str(plot), "cells": cells})

    def draw_differences(self, differences: Mapping[str, Any], plot: Path) -> PublishResult:
        """Draws the differences between the cells of a plot, which `compare.plots.as_drawn` has."""
        folder = str(plot.parent)
        return self.ask({"folder": folder, "plot": str(plot), "differences": differences})

    def log_comparison(self, folder: Path, end: SweepEnd) -> PublishResult:
        """Logs the end of a sweep, whose comparison is in `folder`."""
        return self.ask({"folder": str(folder), "sweep_end": end.as_request()})

    def ask(self, request: Mapping[str, Any]) -> PublishResult:
        """Sends a request, to a second worker where the first one dies over it."""
        with self._asking:
            return self._ask(request)

    def _ask(self, request: Mapping[str, Any]) -> PublishResult:
        if not self.needs_worker:
            return result_of(worker.serve({**self.settings, **request}))

        death = ""
        # Twice: a worker may have been killed between two requests. One that dies twice over the
        # same request dies of it.
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
            raise EOFError("no answer")  # it died, perhaps in the middle of a line

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

            process.kill()  # it may be alive, and only have said something that can't be read
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
            # subprocess warns of a child that nobody waited for, and this one is left on purpose.
            process.returncode = 0
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
