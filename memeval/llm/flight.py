"""Sends a request once for all callers that want the same reply at the same time.

Within a process, the second caller waits for the outcome of the first one. Between processes, the
one that sends holds a lease of the request, which ends with the process: a waiting process takes
over. The others find the reply in the cache.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Generic, TypeVar

from memeval.errors import MemevalError
from memeval.llm.leases import Leases

T = TypeVar("T")

FIRST_POLL_S, LONGEST_POLL_S = 0.01, 0.2
"""Seconds between two looks whether another process is done with a request."""
PATIENCE_S = 900.0
"""Seconds for which a process waits for another one, which may be stopped and never continue."""


class Pace:
    """The waits for another process: short at first, and bounded in total."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._next_s = FIRST_POLL_S
        self._until = time.monotonic() + patience_s

    async def wait(self) -> None:
        await asyncio.sleep(self._next_s)
        self._next_s = min(LONGEST_POLL_S, 1.5 * self._next_s)

    @property
    def over(self) -> bool:
        """Whether the time to wait is over."""
        return time.monotonic() >= self._until


class Flights(Generic[T]):
    """The requests under way on one event loop, by key."""

    def __init__(self, leases: Leases, patience_s: float = PATIENCE_S) -> None:
        self._leases, self._patience_s = leases, patience_s
        self._under_way: dict[str, asyncio.Future[None]] = {}

    async def once(
        self,
        key: str,
        look: Callable[[], Awaitable[T | None]],
        ask: Callable[[], Awaitable[T]],
    ) -> T:
        """The reply that `look` reads from the cache, or that `ask` fetches and stores there.

        A caller that waits for another one of this process shares its failure. If the other one was
        cancelled, or belongs to another process, the next caller asks.
        """
        reply = await look()
        while reply is None and (others := self._under_way.get(key)) is not None:
            # A caller that is cancelled must not cancel the request that the others wait for.
            await asyncio.shield(others)
            reply = await look()

        if reply is not None:
            return reply

        own = self.begin([key])
        try:
            outcome = await self._alone(key, look, ask)
        except MemevalError as error:
            self.end(own, error)
            raise
        finally:
            self.end(own)

        return outcome

    async def _alone(
        self,
        key: str,
        look: Callable[[], Awaitable[T | None]],
        ask: Callable[[], Awaitable[T]],
    ) -> T:
        """Does the work of `once` for the first caller of this process."""
        pace = Pace(self._patience_s)
        while not (leased := await self._leases.take([key])) and not pace.over:
            await pace.wait()

        try:
            # Another process may have stored the reply before it gave its lease back.
            reply = await look()
            return reply if reply is not None else await ask()
        finally:
            self._leases.give(leased)

    def begin(self, keys: Iterable[str]) -> Mapping[str, asyncio.Future[None]]:
        """Notes that requests for the keys begin; none of them may be under way."""
        loop = asyncio.get_running_loop()
        own = {key: loop.create_future() for key in keys}
        self._under_way |= own
        return own

    def end(
        self, own: Mapping[str, asyncio.Future[None]], error: MemevalError | None = None
    ) -> None:
        """Ends the requests, and wakes the callers that wait, with the error if there is one."""
        for key, future in own.items():
            if future.done():
                continue

            del self._under_way[key]
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
                # Without a waiting caller, asyncio would warn of an exception that is never read.
                future.exception()

    def others(self, key: str) -> asyncio.Future[None] | None:
        """The flight of a key that is under way on this loop."""
        return self._under_way.get(key)
