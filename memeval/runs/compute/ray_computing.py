"""Computes units in a worker on a Ray cluster, once memeval can be imported there."""

import pickle
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from memeval import __version__
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.code import figures_code
from memeval.process.environment import private_umask, set_environment
from memeval.results.own_prices import without_prices
from memeval.runs.compute.computing import CommandServer, UnitComputer
from memeval.runs.display.terminal import guard
from memeval.runs.loop import run_loop


class Start(Struct, frozen=True):
    """Data that a worker starts with."""

    version: str
    """memeval's version on the machine that started the sweep."""
    cells: dict[int, Cell]
    processes: int
    """Number of processes that share the limit of each endpoint."""


class Computer:
    """Computes units on the event loop of `serve`."""

    def __init__(self, content: bytes, position: int, send: Callable[[Any], object]) -> None:
        """`position` is the index of this process among those that share a limit; `send` sends a
        message, and None at the end.
        """
        self._start: Start = pickle.loads(content)
        units = UnitComputer(self._start.cells, self._start.processes)
        units.share(self._start.processes, position)
        self.server, self._send = CommandServer(units, send), send
        # From here on this is a memeval process, whose output contains no secrets.
        set_environment()
        guard()
        private_umask()

    def problem(self) -> str:
        """The reason why this process can't compute for the sweep's machine; empty if it can."""
        if self._start.version != __version__:
            return f"it has memeval {__version__}, but this machine has {self._start.version}"

        for cell in self._start.cells.values():
            # Equal versions are not enough: in a checkout the code may have been edited.
            if figures_code(type(cell.dataset)) != without_prices(cell.figures_code):
                return "its memeval code differs from this machine's"

        return ""

    def serve(self) -> None:
        """Runs an event loop until the command to end."""
        try:
            run_loop(self.server.serve())
        finally:
            self.server.close()
            self._send(None)
