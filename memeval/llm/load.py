"""Utilisation of an endpoint."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from memeval.llm.exchange import Exchange, exchange
from memeval.llm.in_flight import in_flight
from memeval.text.shown import counted


class Load(Struct):
    """Utilisation of an endpoint, for display."""

    slots: int = 0
    """Maximum number of concurrent requests."""
    under_way: int = 0
    """Requests under way at this moment."""
    calls: int = 0
    """Tries that ended."""
    waits: int = 0
    """Tries to which the endpoint replied by asking for fewer calls."""
    retries: int = 0
    """Failed tries that were repeated, including the rate-limited ones."""
    failures: int = 0
    """Calls that failed at every try."""
    busy_s: float = 0.0
    """Sum of the tries' durations at the endpoint, without waits for this process's event loop."""
    began: float | None = None
    """When the first try was sent, as `time.perf_counter` counts."""
    ended: float = 0.0
    """When the last try ended."""
    worked_s: float = 0.0
    """CPU time of the process between `began` and `ended`. The event loop's thread alone would
    underestimate it: it waits for the interpreter's lock while other threads compute.
    """
    url: str = ""
    """Set if several endpoints are shown."""
    _worked_before: float = 0.0

    @asynccontextmanager
    async def calling(self, work: object = None) -> AsyncIterator[Exchange]:
        """Counts a try for some work. Once the run or the work is ending, only clean-up starts."""
        async with in_flight.request(work):
            if self.began is None:
                self.began, self._worked_before = time.perf_counter(), time.process_time()

            self.under_way += 1
            with exchange() as current:
                try:
                    yield current
                finally:
                    self.under_way -= 1
                    self.calls += 1
                    self.ended = time.perf_counter()
                    self.worked_s = time.process_time() - self._worked_before
                    self.busy_s += current.seconds()


def sum_of(loads: Sequence[Load]) -> Load:
    """The combined load of one endpoint that several processes call. It has the largest of their
    CPU times, since a fully used processor slows down only its own process.
    """
    begins = [load.began for load in loads if load.began is not None]
    # A process that only stores the results of the others has slots, but does not use them.
    loads = [load for load in loads if load.began is not None] or loads[:1]
    # By `sum`: since Python 3.12 its last digits differ from those of `+=`.
    total = Load(busy_s=sum(load.busy_s for load in loads), began=min(begins, default=None))
    for load in loads:
        total.slots += load.slots
        total.under_way += load.under_way
        total.calls += load.calls
        total.waits += load.waits
        total.retries += load.retries
        total.failures += load.failures
        total.ended = max(total.ended, load.ended)
        total.worked_s = max(total.worked_s, load.worked_s)

    return total


BINDING = 0.8
"""Minimum usage at which the endpoint or the processor counts as the bottleneck."""


def busy_line(load: Load) -> str | None:
    """The utilisation of the endpoint and this machine, the bottleneck, and the retries; None if
    there was no call, or if all processes that made calls have died.
    """
    if load.began is None or load.ended <= load.began or not load.slots:
        return None

    # Between the first call and the last: the usage of the slots and of one processor.
    elapsed_s = load.ended - load.began
    # At most 1, because the times of single calls are only exact to a few ms.
    endpoint = min(load.busy_s / elapsed_s / load.slots, 1.0)
    processor = min(load.worked_s / elapsed_s, 1.0)

    bottleneck = "neither is the bottleneck"
    if max(endpoint, processor) >= BINDING:
        binding = "the endpoint" if endpoint >= processor else "memeval's CPU"
        bottleneck = f"{binding} is the bottleneck"

    # A limit of the provider leaves slots and processor idle.
    if load.retries:
        bottleneck += f"; {counted(load.retries, 'retry', 'retries')} (429: {load.waits:,})"

    where = f" at {load.url}" if load.url else ""
    return (
        f"{100 * endpoint:.0f} % of the {counted(load.slots, 'request slot')}{where} in use, "
        f"memeval's CPU {100 * processor:.0f} %: {bottleneck}"
    )
