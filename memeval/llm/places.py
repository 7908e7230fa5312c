"""The places at an endpoint: at most so many requests are under way at once, over all processes of
a home.

A place is a locked byte of a file, so that a process that dies gives its places back. Within a
process a place is handed on directly. Between processes each gets an equal share while all have
work, and what one leaves idle the others take. Where processes name different limits, the lowest
holds for all of them as long as its process runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from memeval.llm.locks import ByteLocks

PROCESSES = 256
"""Processes at one endpoint that share fairly; further ones hold the limit all the same."""
LOOK_S = 0.1
"""How long a process relies on what it knows of the others."""
POLL_S = 0.01
"""Between two looks of a process that waits for a place of another's."""
COOL_S = 0.03
"""How long a process that gave its last place up leaves it to the one that it was for."""

# Bytes that are locked: places from 0 on; then one byte per process that is there, one per process
# that waits for more places, one per process that waits and has none.
_THERE, _HUNGRY, _STARVING = 1 << 40, 1 << 41, 1 << 42
_NOTE = 8
"""Bytes of the note in which a process tells its limit."""


class Places:
    """The places at one address under one key, as one endpoint asks for them: `async with places:
    ...` holds one.

    May be used from several event loops and threads.
    """

    def __init__(self, folder: Path, address: str, key: str, limit: int) -> None:
        """`folder` holds the lock files of a home.

        Raises `StorageError` where it can't be written.
        """
        name = hashlib.sha256(f"{address}\n{key}".encode()).hexdigest()[:32]
        self._shared = _Shared.at(folder / f"places-{name}")
        self.limit = limit
        self._shared.enter(self)

    def lower(self, limit: int) -> None:
        """Asks for fewer places from now on."""
        self.limit = min(self.limit, limit)
        self._shared.tell()

    def close(self) -> None:
        """Asks for none any more: this limit binds nobody then."""
        self._shared.leave(self)

    async def __aenter__(self) -> Self:
        await self._shared.acquire()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shared.release()


@dataclass(eq=False)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    granted: bool = False

    def wake(self) -> bool:
        """Tells the waiter that a place is its own; False where its loop is closed, and nobody
        waits any more."""
        try:
            if asyncio.get_running_loop() is self.loop:
                self._tell()
                return True
        except RuntimeError:  # called outside of any loop
            pass

        try:
            self.loop.call_soon_threadsafe(self._tell)
        except RuntimeError:
            return False

        return True

    def _tell(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class _Shared:
    """The places of one file as this process holds them."""

    def __init__(self, locks: ByteLocks) -> None:
        self._locks = locks
        self._guard = threading.RLock()
        self._held: list[int] = []
        self._queue: deque[_Waiter] = deque()
        self._handles: list[Places] = []
        self._polling: set[asyncio.AbstractEventLoop] = set()

        self._index: int | None = None
        self._rung: int | None = None
        self._others = 0
        self._limit = self._own = 1
        self._looked = self._cool_until = float("-inf")

    @classmethod
    def at(cls, path: Path) -> _Shared:
        locks = ByteLocks.at(path)
        with _making:
            return _shared.setdefault(locks, cls(locks))

    def enter(self, handle: Places) -> None:
        with self._guard:
            self._handles.append(handle)
            if self._index is None:
                free = (index for index in range(PROCESSES) if self._locks.take(_THERE + index))
                self._index = next(free, None)

            self.tell()

    def leave(self, handle: Places) -> None:
        with self._guard:
            if handle in self._handles:
                self._handles.remove(handle)

            if self._handles:
                self.tell()
            elif self._index is not None:
                self._ring(None)
                self._locks.give(_THERE + self._index)
                self._index = None

    def tell(self) -> None:
        """Leaves word of the lowest limit that this process names."""
        with self._guard:
            self._own = max(1, min(handle.limit for handle in self._handles))
            if self._index is not None:
                self._locks.write(self._index * _NOTE, self._own.to_bytes(_NOTE, "big"))

            self._look(at_once=True)

    async def acquire(self) -> None:
        with self._guard:
            if not self._queue and self._take():
                return

            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, loop.create_future())
            self._queue.append(waiter)
            self._ring_as_needed()
            if loop not in self._polling:
                self._polling.add(loop)
                loop.call_later(POLL_S, self._poll, loop)

        try:
            await waiter.future
        except asyncio.CancelledError:
            with self._guard:
                if waiter.granted:
                    self.release()
                else:
                    self._queue.remove(waiter)
                    self._ring_as_needed()

            raise

    def release(self) -> None:
        """Hands a place on to who waits in this process, or gives it back where others have too
        few."""
        with self._guard:
            self._look()
            over = len(self._held) > self._limit
            place = max(self._held) if over else self._held[-1]

            if not self._queue or over or place >= self._limit or self._owes():
                self._held.remove(place)
                self._locks.give(place)
                self._cool_until = (
                    time.monotonic() + COOL_S if self._queue and not self._held else float("-inf")
                )
            else:
                self._grant()

            self._ring_as_needed()

    def _grant(self) -> None:
        """Wakes the first who waits; the place is counted already."""
        while self._queue:
            waiter = self._queue.popleft()
            waiter.granted = True
            if waiter.wake():
                return

        self._locks.give(self._held.pop())

    def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        """Looks whether other processes left a place, as long as anybody waits on `loop`."""
        with self._guard:
            while self._queue and self._take():
                self._grant()

            self._ring_as_needed()

            if any(waiter.loop is loop for waiter in self._queue):
                loop.call_later(POLL_S, self._poll, loop)
            else:
                self._polling.discard(loop)

    def _take(self) -> bool:
        """Takes a free place, if this process may have another."""
        self._look()
        if len(self._held) >= self._limit or not self._may_grow():
            return False

        for place in range(self._limit):
            if self._locks.take(place):
                self._held.append(place)
                return True

        return False

    def _may_grow(self) -> bool:
        if not self._others:
            return True
        if not self._held:
            return time.monotonic() >= self._cool_until
        if self._heard(_STARVING):
            return False

        return len(self._held) < self._share() or not self._heard(_HUNGRY)

    def _owes(self) -> bool:
        """Whether a place is due to another process: it has none, or this one has more than its
        share."""
        if not self._others:
            return False

        return self._heard(_STARVING) or (len(self._held) > self._share() and self._heard(_HUNGRY))

    def _share(self) -> int:
        return -(-self._limit // (self._others + 1))

    def _look(self, *, at_once: bool = False) -> None:
        """Learns how many other processes there are, and the lowest limit of all."""
        now = time.monotonic()
        if not at_once and now - self._looked < LOOK_S:
            return

        self._looked = now
        there = self._occupied(0, PROCESSES)
        self._others, self._limit = len(there), self._own

        if there:
            notes = self._locks.read(PROCESSES * _NOTE)
            told = [
                int.from_bytes(notes[index * _NOTE : (index + 1) * _NOTE], "big") for index in there
            ]
            self._limit = min([self._own, *(limit for limit in told if limit > 0)])

    def _occupied(self, start: int, end: int) -> list[int]:
        """Indexes of the other processes that are there."""
        if self._index is not None and start <= self._index < end:
            return self._occupied(start, self._index) + self._occupied(self._index + 1, end)
        if self._locks.free(_THERE + start, end - start):
            return []
        if end - start == 1:
            return [start]

        middle = (start + end) // 2

        return self._occupied(start, middle) + self._occupied(middle, end)

    def _heard(self, bell: int) -> bool:
        """Whether another process rings."""
        own = self._index if self._index is not None else PROCESSES
        before = self._locks.free(bell, own)
        return not (before and self._locks.free(bell + own + 1, PROCESSES - own - 1))

    def _ring_as_needed(self) -> None:
        if not self._queue or not self._others:
            self._ring(None)
        else:
            self._ring(_HUNGRY if self._held else _STARVING)

    def _ring(self, bell: int | None) -> None:
        if bell == self._rung or self._index is None:
            return
        if self._rung is not None:
            self._locks.give(self._rung + self._index)

        # Another process that listens just now keeps the bell from ringing; the next look rings it.
        self._rung = bell if bell is not None and self._locks.take(bell + self._index) else None


_shared: dict[ByteLocks, _Shared] = {}
_making = threading.Lock()
