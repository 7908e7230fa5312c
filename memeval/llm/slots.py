"""The request slots at an endpoint: they limit the requests under way at once in this process.

A launcher that computes in several processes gives each of them a part of the limit
(`Connections`), so no process asks another one before it sends a request.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from memeval.errors import UserError


def slots_of_process(limit: int, processes: int, address: str) -> int:
    """The slots of each of several processes that share the limit of an address.

    Raises `UserError` if there are fewer slots than processes.
    """
    if limit < processes:
        raise UserError(
            f"{processes} processes can't share max_concurrency={limit} at {address}",
            f"use:  at most {limit} processes (hydra.launcher.n_jobs={limit}), "
            "or hydra/launcher=memeval",
        )

    return limit // processes


class Slots:
    """The slots at one address under one key.

    `async with slots: ...` holds one of them. Several event loops and threads may use it.
    """

    def __init__(self, address: str, key: str, limit: int) -> None:
        self.limit = limit
        with _making:
            self._limiter = _limiters.setdefault((address, key), _Limiter())

        self._limiter.enter(self)

    def lower(self, limit: int) -> None:
        """Asks for fewer slots from now on."""
        self.limit = min(self.limit, limit)

    def close(self) -> None:
        """Gives this handle up; its limit no longer counts."""
        self._limiter.leave(self)

    async def __aenter__(self) -> Self:
        await self._limiter.acquire()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._limiter.release()


@dataclass(eq=False)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    thread: int = field(default_factory=threading.get_ident)

    def wake(self) -> bool:
        """Hands a slot to the waiter; False if its loop is closed, so that nobody waits."""
        try:
            if self.thread == threading.get_ident():
                self._resolve()
            else:
                self.loop.call_soon_threadsafe(self._resolve)
        except RuntimeError:
            return False

        return True

    def _resolve(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class _Limiter:
    """What the handles of one address and key share: the lowest of their limits holds."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._handles: list[Slots] = []
        self._queue: deque[_Waiter] = deque()
        self._held = 0

    def enter(self, handle: Slots) -> None:
        with self._guard:
            self._handles.append(handle)

    def leave(self, handle: Slots) -> None:
        with self._guard:
            if handle in self._handles:
                self._handles.remove(handle)
                self._hand_on()

    async def acquire(self) -> None:
        with self._guard:
            # A new caller does not overtake those that wait.
            if not self._queue and self._held < self._limit():
                self._held += 1
                return

            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, loop.create_future())
            self._queue.append(waiter)

        try:
            await waiter.future
        except asyncio.CancelledError:
            with self._guard:
                if waiter in self._queue:
                    self._queue.remove(waiter)
                else:
                    # It was handed a slot in the same moment: the slot goes to the next one.
                    self._held -= 1
                    self._hand_on()

            raise

    def release(self) -> None:
        with self._guard:
            self._held -= 1
            self._hand_on()

    def _limit(self) -> int:
        return min((handle.limit for handle in self._handles), default=0)

    def _hand_on(self) -> None:
        """Wakes as many waiters as there are free slots; their slots are counted already."""
        while self._queue and self._held < self._limit():
            if self._queue.popleft().wake():
                self._held += 1


_limiters: dict[tuple[str, str], _Limiter] = {}
_making = threading.Lock()
