"""Bounds how much work is open at once."""

from __future__ import annotations

import asyncio


class Window:
    """Lets cases in while fewer than `limit` questions are open; a case larger than the limit goes in whole."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open = 0
        self._changed = asyncio.Event()

    async def enter(self, questions: int) -> None:
        while self._open >= self._limit:
            self._changed.clear()
            await self._changed.wait()
        self._open += questions

    def leave(self, questions: int) -> None:
        self._open -= questions
        self._changed.set()
