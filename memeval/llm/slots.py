"""The request slots at an endpoint: they limit the requests under way at once in this process.

A launcher that computes in several processes gives each of them a part of the limit
(`Connections`), so no process asks another one before it sends a request.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from memeval.errors import UserError


def slots_of_process(limit: int, processes: int, address: str) -> int:
    """Each process's slots of a shared limit. Raises `UserError` if there are too few."""
    if limit < processes:
        raise UserError(
            f"{processes} processes can't share max_concurrency={limit} at {address}",
            f"use:  at most {limit} processes (hydra.launcher.n_jobs={limit}), "
            "or hydra/launcher=memeval",
        )

    return limit // processes


class Slots:
    """The slots at an address under a key; of several objects the lowest limit holds."""

    def __init__(self, address: str, key: str, limit: int) -> None:
        self.limit = limit
        self._line = _lines.setdefault((address, key), _Line())
        with self._line.guard:
            self._line.members.append(self)

    def lower(self, limit: int) -> None:
        """Asks for fewer slots from now on."""
        self.limit = min(self.limit, limit)

    def close(self) -> None:
        """Its limit no longer counts."""
        with self._line.guard:
            if self in self._line.members:
                self._line.members.remove(self)
                self._line.hand_on()

    async def __aenter__(self) -> Self:
        line = self._line
        with line.guard:
            # A new caller does not overtake those that wait.
            if not line.queue and line.held < line.limit():
                line.held += 1
                return self

            waiter = asyncio.get_running_loop().create_future()
            line.queue.append(waiter)

        try:
            await waiter
        except asyncio.CancelledError:
            with line.guard:
                if waiter in line.queue:
                    line.queue.remove(waiter)
                else:
                    # It was handed a slot in the same moment: the slot goes to the next one.
                    line.release()

            raise

        return self

    async def __aexit__(self, *_: object) -> None:
        with self._line.guard:
            self._line.release()


@dataclass
class _Line:
    """Those who wait at one address under one key. All is read and changed under its `guard`."""

    guard: threading.Lock = field(default_factory=threading.Lock)
    members: list[Slots] = field(default_factory=list)
    queue: deque[asyncio.Future[None]] = field(default_factory=deque)
    held: int = 0
    """Slots in use, those included that were just handed on."""

    def limit(self) -> int:
        return min((member.limit for member in self.members), default=0)

    def release(self) -> None:
        self.held -= 1
        self.hand_on()

    def hand_on(self) -> None:
        """Wakes as many waiters as there are free slots."""
        while self.queue and self.held < self.limit():
            waiter = self.queue.popleft()
            # A loop that is closed has nobody who waits.
            with suppress(RuntimeError):
                waiter.get_loop().call_soon_threadsafe(_resolve, waiter)
                self.held += 1


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


_lines: dict[tuple[str, str], _Line] = {}
