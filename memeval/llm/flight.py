"""Sends a request once for all callers that want the same reply at the same time.

Within a process, the second caller waits for the first caller's result. Between processes, the
sender holds a lease of the request. If that process dies, its lease ends, and a waiting process
takes over. The others find the reply in the cache.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Generic, TypeVar

from memeval.errors import MemevalError
from memeval.llm.leases import Leases

T = TypeVar("T")

FIRST_POLL_S, LONGEST_POLL_S = 0.01, 0.2
"""Shortest and longest time between two checks for another process's reply, in seconds."""
PATIENCE_S = 900.0
"""Seconds for which a process waits for another process, which may be suspended forever."""

Fetch = Callable[[Sequence[str]], Awaitable[Mapping[str, T]]]
"""Returns replies by key; a key without a reply is left out."""


class Flights(Generic[T]):
    """The requests under way on one event loop, by key."""

    def __init__(
        self,
        leases: Leases,
        *,
        size: int = 1,
        at_once: int | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """A request carries up to `size` keys; `at_once` bounds the requests under way."""
        self._leases, self._size, self._patience_s = leases, size, patience_s
        self._slots = nullcontext() if at_once is None else asyncio.Semaphore(at_once)
        self._under_way: dict[str, asyncio.Future[None]] = {}

    async def fetch(self, keys: Sequence[str], look: Fetch[T], ask: Fetch[T]) -> dict[str, T]:
        """The replies that `look` reads from the cache, or that `ask` fetches and stores there.

        A caller that waits for another caller in this process shares its failure. If the other
        caller was cancelled, or belongs to another process, the next caller sends the request.
        """
        replies: dict[str, T] = {}
        while missing := [key for key in keys if key not in replies]:
            replies |= await look(missing)
            fresh, others = [], []
            for key in missing:
                if key in replies:
                    continue
                if key in self._under_way:
                    others.append(self._under_way[key])
                else:
                    fresh.append(key)

            # Own requests first: those of other callers continue meanwhile.
            if fresh:
                replies |= await self._ask_all(fresh, look, ask)

            for flight in others:
                # If this caller is cancelled, the request that others wait for must continue.
                await asyncio.shield(flight)

        return replies

    async def _ask_all(self, keys: Sequence[str], look: Fetch[T], ask: Fetch[T]) -> dict[str, T]:
        """Requests keys that no other caller of this process has requested."""
        # Batches depend only on the keys, and each is stored completely or not at all. So after a
        # crash, the remaining keys form the same batches.
        batches = [keys[start : start + self._size] for start in range(0, len(keys), self._size)]
        loop = asyncio.get_running_loop()
        flights: list[asyncio.Future[None]] = []
        for batch in batches:
            flight = loop.create_future()
            flights.append(flight)
            self._under_way |= dict.fromkeys(batch, flight)

        if len(batches) == 1:
            return await self._request_batch(batches[0], flights[0], look, ask)

        # All batches finish before an error is raised, so that replies already paid for are stored.
        requests = [
            self._request_batch(*batch, look, ask) for batch in zip(batches, flights, strict=True)
        ]
        try:
            outcomes = await asyncio.gather(*requests, return_exceptions=True)
        finally:
            # A batch that was cancelled before it began has not ended its flight itself.
            for batch, flight in zip(batches, flights, strict=True):
                self._end(batch, flight)

        replies: dict[str, T] = {}
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

            replies |= outcome

        return replies

    async def _request_batch(
        self, batch: Sequence[str], flight: asyncio.Future[None], look: Fetch[T], ask: Fetch[T]
    ) -> dict[str, T]:
        """Requests a batch, and wakes the callers that wait for its `flight`."""
        try:
            async with self._slots:
                return await self._fetch_batch(batch, look, ask)
        except MemevalError as error:
            flight.set_exception(error)
            # Without a waiting caller, asyncio would warn of an exception that is never read.
            flight.exception()
            raise
        finally:
            self._end(batch, flight)

    def _end(self, batch: Sequence[str], flight: asyncio.Future[None]) -> None:
        """Wakes the callers that wait for a batch, unless they have been woken already."""
        for key in batch:
            if self._under_way.get(key) is flight:
                del self._under_way[key]

        if not flight.done():
            flight.set_result(None)

    async def _fetch_batch(
        self, batch: Sequence[str], look: Fetch[T], ask: Fetch[T]
    ) -> dict[str, T]:
        """Does the work of `fetch` for the first caller of these keys in this process."""
        replies: dict[str, T] = {}
        until, wait_s = time.monotonic() + self._patience_s, FIRST_POLL_S
        while missing := [key for key in batch if key not in replies]:
            leased = await self._leases.acquire(missing)
            try:
                # Another process may have stored them before it released its lease.
                replies |= await look(missing)
                # A process that holds its lease too long may be suspended forever.
                wanted = leased if time.monotonic() < until else missing
                due = [key for key in missing if key in wanted and key not in replies]
                if due:
                    replies |= await ask(due)
            finally:
                self._leases.release(leased)

            if len(replies) < len(batch):
                await asyncio.sleep(wait_s)
                wait_s = min(LONGEST_POLL_S, 1.5 * wait_s)

        return replies
