"""The request slots at an endpoint: they limit this process's concurrent requests.

A launcher that computes in several processes gives each of them a part of the limit
(`Connections`), so a process can send a request without asking the others.
"""

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import Self

from memeval.errors import UserError


def slots_of_process(
    limit: int, processes: int, address: str, *, position: int | None = None
) -> int:
    """A process's share of a limit on slots. The remainder goes to the first processes, if they
    know their `position`. Raises `UserError` if there are fewer slots than processes.
    """
    if limit < processes:
        raise UserError(
            f"{processes} processes can't share max_concurrency={limit} at {address}",
            f"use:  at most {limit} processes (hydra.launcher.n_jobs={limit}), "
            "or hydra/launcher=memeval",
        )

    more = position is not None and position < limit % processes
    return limit // processes + more


class Slots:
    """Slots shared by several endpoints, on any event loops; the lowest limit applies."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._limits: dict[object, int] = {}
        """The limit that each endpoint requests."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._held = 0
        """Slots in use, including those just handed to a waiter."""

    def limit(self, endpoint: object, limit: int) -> None:
        """Sets the limit that an endpoint requests."""
        with self._guard:
            self._limits[endpoint] = limit
            self._wake_waiters()

    def leave(self, endpoint: object) -> None:
        """Removes the limit of an endpoint."""
        with self._guard:
            self._limits.pop(endpoint, None)
            self._wake_waiters()

    async def acquire(self) -> None:
        """Waits for a slot, to be released with `release`."""
        with self._guard:
            # A new caller does not overtake those that wait.
            if not self._waiting and self._is_free():
                self._held += 1
                return

            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)

        try:
            await waiter
        except asyncio.CancelledError:
            with self._guard:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                else:
                    # It was handed a slot at the same moment: the slot goes to the next waiter.
                    self._release()

            raise

    def release(self) -> None:
        """Releases a slot; the caller that has waited longest gets it."""
        with self._guard:
            self._release()

    def _is_free(self) -> bool:
        return self._held < min(self._limits.values(), default=0)

    def _release(self) -> None:
        self._held -= 1
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        """Wakes as many waiters as there are free slots."""
        while self._waiting and self._is_free():
            waiter = self._waiting.popleft()
            loop = waiter.get_loop()
            # A closed loop has no waiting callers.
            with suppress(RuntimeError):
                if loop is _running_loop():
                    _resolve(waiter)  # wakes it one iteration of the loop sooner
                else:
                    loop.call_soon_threadsafe(_resolve, waiter)

                self._held += 1


class Slot:
    """A context manager that waits for a request slot and holds it."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._is_held = False

    async def __aenter__(self) -> Self:
        await self._slots.acquire()
        self._is_held = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self._release()

    async def release_early(self) -> None:
        """Releases the slot before the answer is processed, so that waiting calls send first.

        Otherwise the slot would be unused meanwhile: a tenth of the time at 300 replies a second.
        """
        self._release()
        await asyncio.sleep(0)

    def _release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._slots.release()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


_slots: dict[tuple[str, str], Slots] = {}


def slots_at(address: str, key: str) -> Slots:
    """This process's slots at a URL for an API key."""
    return _slots.setdefault((address, key), Slots())
