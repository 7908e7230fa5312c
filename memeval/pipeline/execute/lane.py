"""Resources of cells that run side by side: connections, open files, order of cases."""

import asyncio
import heapq
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from msgspec import Struct, field

from memeval.pipeline.execute.stores import Stores
from memeval.pipeline.execute.unit import Keeper, UnitDone, WorkUnit
from memeval.pipeline.execute.window import Window
from memeval.pipeline.open.connections import Connections, Loads


class TurnQueue:
    """Lets one cell at a time hand out its cases, in the sweep's order.

    The next cell begins when this one has none left, and uses the endpoint's idle slots.
    """

    def __init__(self) -> None:
        self._holder: int | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def acquire(self, number: int) -> None:
        """Waits for the turn of the cell with this number, unless the cell already has it."""
        if self._holder is None:
            self._holder = number
        if self._holder == number:
            return

        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (number, future))
        try:
            await future
        except asyncio.CancelledError:
            # The turn may have been handed over at this moment: without this it would be lost.
            self.release(number)
            raise

    @property
    def is_done(self) -> bool:
        """Whether all cells have handed out their cases."""
        return self._holder is None and not self._waiting

    def release(self, number: int) -> None:
        """Ends the turn of a cell, if the cell has it."""
        if self._holder != number:
            return

        self._holder = None
        while self._waiting:
            next_number, future = heapq.heappop(self._waiting)
            # A cancelled waiter is still in the heap.
            if not future.done():
                self._holder = next_number
                # Called from `finally`, where the loop may already be closed.
                with suppress(RuntimeError):
                    future.set_result(None)

                return


class Computing(Protocol):
    """Worker processes that compute whole units."""

    callers: int
    """Processes that share the limit of an endpoint, this one included if it makes calls."""

    def loads(self) -> Iterable[Loads]:
        """The load of the endpoints from each process that reports it."""

    async def compute(
        self, unit: Callable[[], WorkUnit], keeper: Keeper, is_last: Callable[[], bool]
    ) -> UnitDone:
        """The result of a unit. `keeper` gets rows; `unit` is called again if a process died.

        `is_last` says whether no more units will follow.
        """

    async def stop(self) -> None:
        """Stops the processes at the end."""


class Lane(Struct):
    """Resources shared by cells that wait for the same endpoints, or that only compute."""

    connections: Connections
    stores: Stores
    window: Window
    """Limits the open work over all cells of the lane."""
    queue: TurnQueue = field(default_factory=TurnQueue)
    computing: Computing | None = None
    """Processes that compute the units; None if units run in this process."""
    processes: int = 0
    """Number of processes that work on units at the same time."""
