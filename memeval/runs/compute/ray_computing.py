"""Computes units in a worker on a Ray cluster, once memeval can be imported there."""

import asyncio
import pickle
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from msgspec import Struct

from memeval import __version__
from memeval.llm.in_flight import in_flight
from memeval.pipeline.execute.unit import WorkUnit
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.code import figures_code
from memeval.process.environment import private_umask, set_environment
from memeval.results.own_prices import without_prices
from memeval.runs.compute.computing import DONE, FAILED, MESSAGE, UnitComputer
from memeval.runs.display.terminal import guard
from memeval.runs.loop import run_loop


class Start(Struct, frozen=True):
    """Data that a worker starts with."""

    version: str
    """memeval's version on the machine that started the sweep."""
    cells: dict[int, Cell]
    processes: int
    """Number of processes that share the limit of each endpoint."""


class Computer(UnitComputer):
    """Computes units on the event loop of `serve`."""

    def __init__(self, content: bytes, position: int) -> None:
        """`position` is the index of this process among those that share a limit."""
        start: Start = pickle.loads(content)
        super().__init__(start.cells, start.processes)
        self.share(start.processes, position)
        self._version = start.version
        # From here on this is a memeval process, whose output contains no secrets.
        set_environment()
        guard()
        private_umask()

    def problem(self) -> str:
        """The reason why this process can't compute for the sweep's machine; empty if it can."""
        if self._version != __version__:
            return f"it has memeval {__version__}, but this machine has {self._version}"

        for cell in self._cells.values():
            # Equal versions are not enough: in a checkout the code may have been edited.
            if figures_code(type(cell.dataset)) != without_prices(cell.figures_code):
                return "its memeval code differs from this machine's"

        return ""

    def serve(self, loops: Future[asyncio.AbstractEventLoop]) -> None:
        """Runs an event loop until the process ends; `loops` gets the loop."""
        run_loop(self._serve(loops))

    async def _serve(self, loops: Future[asyncio.AbstractEventLoop]) -> None:
        loops.set_result(asyncio.get_running_loop())
        await asyncio.Event().wait()  # forever: units come from another thread

    async def work(self, unit: WorkUnit, send: Callable[[Any], None]) -> None:
        """Computes a unit: sends its messages, and its end."""
        send(await self.compute(unit, lambda message: send((MESSAGE, message))))

    @staticmethod
    def is_end(content: Any) -> bool:
        """Whether the message ends a unit."""
        return content[0] in (DONE, FAILED)

    @staticmethod
    async def finish(most_s: float) -> None:
        """Waits for model calls in progress; no new ones start."""
        await in_flight.finish(most_s)
