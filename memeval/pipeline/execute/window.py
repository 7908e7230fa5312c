"""Limits how much work is open at the same time."""

from __future__ import annotations

import asyncio

ROOM = 32_000_000
"""Characters that open cases may contain in total: six of LongMemEval's largest histories."""


class Window:
    """Lets cases in while there are slots and room for text; a larger case enters alone."""

    def __init__(self, limit: int, room: int = ROOM) -> None:
        self.limit, self._room = limit, room
        self._places = self._held = 0
        self._changed = asyncio.Event()

    async def enter(self, places: int, size: int = 0) -> None:
        """Waits until a case that needs this many slots and characters may be opened."""
        # A case larger than the limit enters alone, as it would wait for ever. A loop: of several
        # waiting cases, the first to be woken may take what became free.
        while self._places >= self.limit or (self._held and self._held + size > self._room):
            self._changed.clear()
            await self._changed.wait()

        self._places += places
        self._held += size

    def leave(self, places: int, size: int = 0) -> None:
        """Releases slots, and at a case's end its characters."""
        self._places -= places
        self._held -= size
        self._changed.set()


class WindowShare:
    """One case's share of a window, released once."""

    def __init__(self, window: Window, places: int, size: int) -> None:
        self.places = places
        self._window, self._left, self._size = window, places, size

    async def enter(self) -> None:
        """Waits until the case may be opened."""
        await self._window.enter(self.places, self._size)

    def leave_one(self) -> None:
        """Releases one slot."""
        self._left -= 1
        self._window.leave(1)

    def leave(self) -> None:
        """Releases the remaining room when a case ends."""
        self._window.leave(self._left, self._size)
        self._left = 0
