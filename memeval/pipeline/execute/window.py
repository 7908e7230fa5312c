"""Limits the amount of work that is open at the same time."""

import asyncio

MAX_CHARACTERS = 32_000_000
"""Characters that open cases may contain in total: six of LongMemEval's largest histories."""


class Window:
    """Lets cases in while there are slots and room for text; a larger case enters alone."""

    def __init__(self, limit: int, most_size: int = MAX_CHARACTERS) -> None:
        self.limit, self._most_size = limit, most_size
        self._slots = self._size = 0
        self._changed = asyncio.Event()

    async def enter(self, slots: int, size: int = 0) -> None:
        """Waits until a case that needs this many slots and characters may be opened."""
        # A case larger than the limit enters alone; otherwise it would wait forever. A loop,
        # because the first of several waiting cases may take the room that became free.
        while self._slots >= self.limit or (self._size and self._size + size > self._most_size):
            self._changed.clear()
            await self._changed.wait()

        self._slots += slots
        self._size += size

    def leave(self, slots: int, size: int = 0) -> None:
        """Releases slots, and at a case's end its characters."""
        self._slots -= slots
        self._size -= size
        self._changed.set()


class WindowShare:
    """One case's share of a window, released once."""

    def __init__(self, window: Window, slots: int, size: int) -> None:
        self.slots = slots
        self._window, self._remaining, self._size = window, slots, size

    async def enter(self) -> None:
        """Waits until the case may be opened."""
        await self._window.enter(self.slots, self._size)

    def leave_one(self) -> None:
        """Releases one slot."""
        self._remaining -= 1
        self._window.leave(1)

    def leave(self, _: object = None) -> None:
        """Releases the remaining room when a case ends; a callback of its task."""
        self._window.leave(self._remaining, self._size)
        self._remaining = 0
