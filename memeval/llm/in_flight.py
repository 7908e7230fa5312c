"""Requests in progress. The first Ctrl-C waits for them, since they are paid for."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from memeval.text.shown import counted

POLL_S = 0.02
"""Seconds between two checks in `wait_for_calls`."""
WRITING_S = 0.2
"""Time limit for writing the last reply before the work is cancelled, in seconds."""

Finish = Callable[[float], Awaitable[None]]
_cleans_up: ContextVar[bool] = ContextVar("cleans_up", default=False)


@dataclass(eq=False)
class OtherProcess:
    """The requests of another process, as that process last reported them."""

    finish: Finish
    """Does the same as `InFlight.finish` in the other process."""
    under_way: int = 0
    sent: int = 0
    lost: int = 0
    thread: int = field(default_factory=threading.get_ident)
    """The thread of this process for which it makes requests."""


class InFlight:
    """Counts the requests in progress, and holds back new ones once the run is ending.

    Event loops of several threads may share one `InFlight`.
    """

    def __init__(self) -> None:
        self.under_way = 0
        """Requests of this process that have been sent and not answered yet."""
        self.closing = False
        """Whether new requests are held back."""
        self.elsewhere: list[OtherProcess] = []
        """The processes that make requests for this one."""
        self.sent = 0
        """Requests that were sent so far."""
        self.lost = 0
        """Cancelled requests and replies not stored: each may be billed, and is requested again."""
        self._lock = threading.Lock()
        self._by_part: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        """Requests under way by their event loop, and by the work that they belong to."""
        self._ending: WeakSet[object] = WeakSet()
        """Event loops and work whose new requests are held back, while all others continue."""

    @asynccontextmanager
    async def request(self, work: object = None) -> AsyncIterator[None]:
        """Counts a request of `work`. A request that is held back waits until it is cancelled."""
        loop = asyncio.get_running_loop()
        is_ending = self.closing or loop in self._ending or work in self._ending
        if is_ending and not _cleans_up.get():
            await loop.create_future()

        parts = (loop,) if work is None else (loop, work)
        with self._lock:
            self.under_way += 1
            self.sent += 1
            for part in parts:
                self._by_part[part] = self._by_part.get(part, 0) + 1

        try:
            yield
        except asyncio.CancelledError:
            self.count_lost()
            raise
        finally:
            with self._lock:
                self.under_way -= 1
                for part in parts:
                    self._by_part[part] -= 1

    def count_lost(self) -> None:
        with self._lock:
            self.lost += 1

    async def finish(self, most_s: float) -> None:
        """Holds back new requests, and waits up to `most_s` seconds for those in progress."""
        self.closing = True
        await _finish(lambda: self.under_way, self.elsewhere, most_s)

    def hold_requests(self, part: object) -> None:
        """Holds back new requests of an event loop or of work; all others continue."""
        self._ending.add(part)

    async def finish_part(self, part: object, most_s: float) -> None:
        """`finish` for the requests of an event loop or of work. The requests of a loop include
        those that other processes make for its thread.
        """
        self.hold_requests(part)
        is_loop, thread = part is asyncio.get_running_loop(), threading.get_ident()
        others = [other for other in self.elsewhere if is_loop and other.thread == thread]
        await _finish(lambda: self._by_part.get(part, 0), others, most_s)

    @property
    def under_way_anywhere(self) -> int:
        """Requests that are not answered yet, including those of other processes."""
        return self.under_way + sum(other.under_way for other in self.elsewhere)

    def remove(self, other: OtherProcess) -> None:
        """Removes a dead process: its requests under way are lost, its counts are kept."""
        self.elsewhere.remove(other)
        self.sent += other.sent
        self.lost += other.lost + other.under_way

    def describe_lost(self, *, all_under_way: bool = False) -> str:
        """Sentence with the number of lost replies, including those under way with `all_under_way`;
        empty if no request was sent.
        """
        if not self.sent + sum(other.sent for other in self.elsewhere):
            return ""

        lost = self.lost + sum(other.lost for other in self.elsewhere)
        if all_under_way:
            lost += self.under_way_anywhere
        if not lost:
            return "0 replies lost"

        replies = counted(lost, "reply", "replies")
        return f"{replies} lost (sent but not stored: they may be billed, and are requested again)"

    def reopen(self) -> None:
        """Lets requests start again, for the next run in this process."""
        self.closing = False


@contextmanager
def cleaning_up() -> Iterator[None]:
    """Requests inside the block are not held back: they end what earlier requests began."""
    before = _cleans_up.set(True)
    try:
        yield
    finally:
        _cleans_up.reset(before)


async def _finish(
    under_way: Callable[[], int], elsewhere: Sequence[OtherProcess], most_s: float
) -> None:
    """Waits for requests here and in other processes, and for the other processes' last rows."""
    await asyncio.gather(
        wait_for_calls(under_way, most_s),
        *(other.finish(most_s) for other in elsewhere),
        return_exceptions=True,
    )
    if elsewhere:
        await asyncio.sleep(WRITING_S)


async def wait_for_calls(under_way: Callable[[], int], most_s: float) -> None:
    """Waits up to `most_s` for the requests under way, then for their last rows to be written."""
    if not under_way():
        return

    until = time.monotonic() + most_s
    # An event belongs to one event loop, but these requests may run on several threads' loops.
    while under_way() and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(POLL_S)

    await asyncio.sleep(WRITING_S)


async def finish_or_cancel(
    task: asyncio.Future[Any],
    stop: asyncio.Future[Any],
    before: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Waits for a task. If `stop` comes first, calls `before` and cancels the task."""
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        if before is not None and not task.done():
            await before()
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise

    if not task.done():
        task.cancel()
        await asyncio.wait({task})


in_flight = InFlight()
"""The requests of this process."""
