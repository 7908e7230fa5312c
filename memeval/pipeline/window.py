"""Bounds how much work is open at once."""

from __future__ import annotations

import asyncio

ROOM = 32_000_000
"""Characters of text that the open cases may hold together: six of LongMemEval's largest histories,
sixty of the smaller.
"""


class Window:
    """Lets cases in while fewer than `limit` places are taken and their text has room; a case
    larger than either goes in alone.
    """

    def __init__(self, limit: int, room: int = ROOM) -> None:
        self._limit, self._room = limit, room
        self._places = self._held = 0
        self._changed = asyncio.Event()

    async def enter(self, places: int, size: int = 0) -> None:
        """Waits until a case with this many places and characters may be opened."""
        while self._places >= self._limit or (self._held and self._held + size > self._room):
            self._changed.clear()
            await self._changed.wait()

        self._places += places
        self._held += size

    def leave(self, places: int, size: int = 0) -> None:
        """Gives back places, and at a case's end its characters."""
        self._places -= places
        self._held -= size
        self._changed.set()
