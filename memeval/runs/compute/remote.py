"""A process that computes units, as the event loop of the sweep sees it."""

import asyncio
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from memeval.llm.in_flight import OtherProcess, in_flight
from memeval.pipeline.execute.unit import Keeper, UnitDone, WorkUnit
from memeval.pipeline.open.connections import Loads, free_slots
from memeval.runs.compute.computing import (
    END,
    ENDING_S,
    FAILED,
    FINISH,
    FINISHED,
    MESSAGE,
    STATE,
    STOP,
    WORK,
    State,
)

LEAVING_S = 3.0
"""Time limit for a worker to release its resources at the end."""


class DiedError(Exception):
    """The process is gone."""


class SentUnit:
    """A unit that another process computes, as the event loop of the sweep sees it."""

    def __init__(self, keeper: Keeper, stop: Callable[[], object]) -> None:
        """`stop` asks the process to cancel the unit."""
        self._keeper, self._stop = keeper, stop
        self.done: asyncio.Future[UnitDone] = asyncio.get_running_loop().create_future()
        self._failure: Exception | None = None
        """The reason why a result could not be stored: the unit then fails in any case."""

    def accept(self, kind: str, content: Any) -> None:
        """Stores a message of the unit, or ends it."""
        if kind == MESSAGE:
            self._keep(content)
        elif self._failure is not None or kind == FAILED:
            self.fail(self._failure or content)
        elif not self.done.done():
            self.done.set_result(content)

    def _keep(self, content: Any) -> None:
        try:
            if self._failure is None:
                self._keeper.keep(content)
        except Exception as error:  # noqa: BLE001 - raised once the process is done with the unit
            self._failure = error
            self._stop()

    def fail(self, error: BaseException) -> None:
        """Ends the unit with an error."""
        if not self.done.done():
            self.done.set_exception(error)
            # Retrieved even if nothing waits for it any more: otherwise asyncio would log it.
            self.done.exception()


class RemoteWorker(ABC):
    """One process: commands to it, and messages from it, each with the number of a unit."""

    def __init__(self) -> None:
        self.loads: Loads = {}
        self.position = 0
        """Its index among the processes that share a limit."""
        self.idle_since = time.monotonic()
        self.is_ending = False
        """Whether it takes no further units."""
        loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = loop.create_future()
        self._finished: asyncio.Future[None] = loop.create_future()
        """Done once its model calls have ended."""
        self._numbers = itertools.count()
        self._units: dict[int, SentUnit] = {}
        self._calls = OtherProcess(self._finish)
        in_flight.elsewhere.append(self._calls)

    @property
    def open_count(self) -> int:
        return len(self._units)

    @abstractmethod
    def send(self, command: Any) -> None:
        """Sends a command; does nothing if the process is gone."""

    @abstractmethod
    def disconnect(self) -> None:
        """Closes the connection; the process then ends."""

    async def compute(self, work: WorkUnit, keeper: Keeper) -> UnitDone:
        """The result of a unit. Raises its error, and `DiedError` if the process is gone.

        After a cancellation, messages that still arrive are kept for a while.
        """
        number = next(self._numbers)

        def stop() -> None:
            self.send((STOP, number, None))

        unit = SentUnit(keeper, stop)
        self._units[number] = unit
        try:
            self.send((WORK, number, work))
            return await asyncio.shield(unit.done)
        except asyncio.CancelledError:
            stop()
            await asyncio.wait({unit.done}, timeout=ENDING_S)
            if not unit.done.done():
                self.close()  # it hangs
            elif self.open_count == 1:
                self.end()  # a thread of the unit may still run

            raise
        finally:
            del self._units[number]
            self.idle_since = time.monotonic()

    def receive(self, number: int, kind: str, content: Any) -> None:
        """Accepts a message of the process."""
        if kind == STATE:
            self.note(content)
        elif kind == FINISHED and not self._finished.done():
            self._finished.set_result(None)
        elif number in self._units:  # not given up
            self._units[number].accept(kind, content)

    def note(self, state: State) -> None:
        """Stores the state of the process."""
        self.loads = state.loads
        self._calls.under_way, self._calls.sent = state.under_way, state.sent
        self._calls.lost = state.lost

    async def _finish(self, most_s: float) -> None:
        """Waits up to `most_s` seconds for the model calls under way; no new ones start."""
        self.send((FINISH, 0, most_s))
        ends = {self._finished, self.gone}
        await asyncio.wait(ends, timeout=most_s, return_when=asyncio.FIRST_COMPLETED)

    def end(self) -> None:
        """Asks the process to end, unless already asked."""
        if not self.is_ending:
            self.is_ending = True
            self.send(END)

    def close(self) -> None:
        """Disconnects from the process, which then ends; its open units raise `DiedError`."""
        if self.gone.done():
            return

        # If it died, another process takes its place.
        if not self.is_ending:
            free_slots(self.loads)

        self.is_ending = True
        self.disconnect()
        in_flight.remove(self._calls)
        self.gone.set_result(None)
        for unit in self._units.values():
            unit.fail(DiedError())


async def stop_workers(
    workers: Sequence[RemoteWorker], starting: Iterable[asyncio.Task[None]] = ()
) -> None:
    """Stops workers, which first release what they hold, and those that are being started."""
    for task in starting:
        task.cancel()

    for worker in workers:
        worker.end()

    ends: list[asyncio.Future[None]] = [*starting, *(worker.gone for worker in workers)]
    if ends:
        await asyncio.wait(ends, timeout=LEAVING_S)

    for worker in workers:
        worker.close()
