"""The places at one endpoint as one process holds them.

They are shared with the other processes of the same home.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from memeval.llm.locks import Locks

PROCESSES = 256
"""Processes at one endpoint that share fairly. Further ones keep to the limit, too."""
LOOK_S = 0.1
"""Seconds for which a process relies on what it knows of the others."""
COOL_S = 0.03
"""Seconds for which a process that gave up its last place does not take one again."""

# Bytes of the file that are locked: one per place, from 0 on; one per process that runs; one per
# process that waits for more places; one per process that waits and holds no place at all.
_THERE, _HUNGRY, _STARVING = 1 << 40, 1 << 41, 1 << 42
_NOTE = 8
"""Bytes of the note in which a process writes its limit."""


@dataclass(eq=False)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    granted: bool = False

    def wake(self) -> bool:
        """Hands a place to the waiter; False where its loop is closed, so that nobody waits."""
        try:
            if asyncio.get_running_loop() is self.loop:
                self._resolve()
                return True
        except RuntimeError:
            # Called outside of any loop: the waiter is woken through its own one.
            pass

        try:
            self.loop.call_soon_threadsafe(self._resolve)
        except RuntimeError:
            return False

        return True

    def _resolve(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Limited(Protocol):
    """A handle on the places, with the most that it wants."""

    limit: int


class SharedPlaces:
    """The places at one endpoint as this process holds them."""

    def __init__(self, locks: Locks) -> None:
        self._locks = locks
        # Reentrant, because the methods that take it call each other.
        self._guard = threading.RLock()
        self._held: list[int] = []
        self._queue: deque[_Waiter] = deque()
        self._handles: list[Limited] = []
        self._polling: set[asyncio.AbstractEventLoop] = set()

        self._index: int | None = None
        self._rung: int | None = None
        self._others = 0
        self._limit = self._own = 1
        self._looked = self._cool_until = float("-inf")

    @classmethod
    def of(cls, locks: Locks) -> SharedPlaces:
        """The places behind these locks; one object per process."""
        with _making:
            return _shared.setdefault(locks, cls(locks))

    def enter(self, handle: Limited) -> None:
        with self._guard:
            self._handles.append(handle)
            if self._index is None:
                there = self._locks.take_first(range(_THERE, _THERE + PROCESSES))
                self._index = None if there is None else there - _THERE

            self.tell()

    def leave(self, handle: Limited) -> None:
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
        """Writes the lowest limit of this process where the other processes read it."""
        with self._guard:
            self._own = max(1, min(handle.limit for handle in self._handles))
            if self._index is not None:
                self._locks.write(self._index * _NOTE, self._own.to_bytes(_NOTE, "big"))

            self._look(at_once=True)

    async def acquire(self) -> None:
        with self._guard:
            # A new caller does not overtake those that wait.
            if not self._queue and self._take():
                return

            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, loop.create_future())
            self._queue.append(waiter)
            self._ring_as_needed()
            if loop not in self._polling:
                self._polling.add(loop)
                loop.call_later(self._locks.poll_s, self._poll, loop)

        try:
            await waiter.future
        except asyncio.CancelledError:
            with self._guard:
                # It was handed a place in the same moment: the place goes to the next one.
                if waiter.granted:
                    self.release()
                else:
                    self._queue.remove(waiter)
                    self._ring_as_needed()

            raise

    def release(self) -> None:
        """Hands a place to a waiter of this process, or back where other processes have too few."""
        with self._guard:
            self._look()
            over = len(self._held) > self._limit
            # Above the limit, the highest place goes first: a lowered limit closes from the top.
            place = max(self._held) if over else self._held[-1]

            if not self._queue or over or place >= self._limit or self._owes():
                self._held.remove(place)
                self._locks.give(place)

                # Else this process would take its place again before the other one looks.
                gave_last = self._queue and not self._held
                self._cool_until = time.monotonic() + COOL_S if gave_last else float("-inf")
            else:
                self._grant()

            self._ring_as_needed()

    def _grant(self) -> None:
        """Wakes the first waiter; its place is counted already."""
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
                loop.call_later(self._locks.poll_s, self._poll, loop)
            else:
                self._polling.discard(loop)

    def _take(self) -> bool:
        """Takes a free place, if this process may have another."""
        self._look()
        if len(self._held) >= self._limit or not self._may_grow():
            return False

        place = self._locks.take_first(range(self._limit))
        if place is None:
            return False

        self._held.append(place)
        return True

    def _may_grow(self) -> bool:
        if not self._others:
            return True
        if not self._held:
            return time.monotonic() >= self._cool_until
        if self._heard(_STARVING):
            return False

        return len(self._held) < self._share() or not self._heard(_HUNGRY)

    def _owes(self) -> bool:
        """Whether another process has no place, or waits while this one exceeds its share."""
        if not self._others:
            return False

        return self._heard(_STARVING) or (len(self._held) > self._share() and self._heard(_HUNGRY))

    def _share(self) -> int:
        # Rounded up: with more processes than places, each may still have one.
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
            limits = [
                int.from_bytes(notes[index * _NOTE : (index + 1) * _NOTE], "big") for index in there
            ]
            # A process that has only just entered has not written its limit yet: it reads as 0.
            self._limit = min([self._own, *(limit for limit in limits if limit > 0)])

    def _occupied(self, start: int, end: int) -> list[int]:
        """Indexes of the other processes that run."""
        if self._index is not None and start <= self._index < end:
            return self._occupied(start, self._index) + self._occupied(self._index + 1, end)
        if self._locks.free(_THERE + start, end - start):
            return []
        if end - start == 1:
            return [start]

        # A free range is one system call for any size: halving finds few among many.
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

        # The bell can't ring while another process tests this byte; the next look rings it.
        self._rung = bell if bell is not None and self._locks.take(bell + self._index) else None


_shared: dict[Locks, SharedPlaces] = {}
_making = threading.Lock()
