"""How much an endpoint is used."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memeval.llm.in_flight import in_flight


@dataclass
class Load:
    """How much an endpoint was used, for people to look at."""

    under_way: int = 0
    """Requests at this moment."""
    calls: int = 0
    """Tries that ended."""
    waits: int = 0
    """Tries after which the endpoint asked for fewer calls."""
    retries: int = 0
    """Tries that failed and were made again, those included."""
    failures: int = 0
    """Calls that failed for good."""
    busy_s: float = 0.0
    """Sum of the time that each try took."""
    began: float | None = None
    """When the first try was sent, as `time.perf_counter` counts."""
    ended: float = 0.0
    """When the last one ended."""

    @asynccontextmanager
    async def calling(self) -> AsyncIterator[None]:
        """Counts a try. It does not start once the run is to end."""
        async with in_flight.request():
            started = time.perf_counter()
            self.began = started if self.began is None else self.began
            self.under_way += 1
            try:
                yield
            finally:
                self.under_way -= 1
                self.calls += 1
                self.ended = time.perf_counter()
                self.busy_s += self.ended - started
