"""The requests that are under way, which a first Ctrl-C lets end: they are paid for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

POLL_S = 0.02
"""How often `finish` looks whether all have ended."""
WRITING_S = 0.2
"""What the last reply has to be written down before the work is cancelled."""

Finish = Callable[[float], Awaitable[None]]


class InFlight:
    """Counts requests, and lets no more begin once they are to end.

    The event loops of several threads may share one.
    """

    def __init__(self) -> None:
        self.under_way = 0
        """Requests that were sent and are not answered yet."""
        self.closing = False
        """Whether no more may begin."""
        self.elsewhere: list[Finish] = []
        """What lets those end that other processes make for this one."""
        self._lock = threading.Lock()

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Counts a request. Where no more may begin it never enters, until it is cancelled."""
        if self.closing:
            await asyncio.get_running_loop().create_future()

        with self._lock:
            self.under_way += 1

        try:
            yield
        finally:
            with self._lock:
                self.under_way -= 1

    async def finish(self, most_s: float) -> None:
        """Lets no more begin, and waits until those under way have ended, `most_s` at most."""
        self.closing = True
        others = [asyncio.ensure_future(finish(most_s)) for finish in self.elsewhere]
        if not self.under_way and not others:
            return

        until = time.monotonic() + most_s
        # An event belongs to one event loop; these requests may run on those of several threads.
        while self.under_way and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)

        if others:
            await asyncio.wait(others, timeout=max(until - time.monotonic(), 0.0))

        await asyncio.sleep(WRITING_S)

    def reopen(self) -> None:
        """Lets requests begin again: the next run in this process."""
        self.closing = False


in_flight = InFlight()
"""That of this process."""
