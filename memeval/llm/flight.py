"""One flight per home: what two ask for at once, in one process or in several, is asked for and
paid once.

Within a process whoever comes second waits for the first one's outcome. Between processes the one
that asks holds a lock on the request's key; the kernel drops it when the process dies, and a waiter
takes over. What a flight brings, the others find in the cache.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Generic, Self, TypeVar

from memeval.errors import MemevalError
from memeval.llm.locks import ByteLocks
from memeval.llm.metering import current_ledger

T = TypeVar("T")

FIRST_POLL_S, LONGEST_POLL_S = 0.01, 0.2
"""Between two looks whether another process is done with a request."""
PATIENCE_S = 900.0
"""How long another process is waited for. One that was stopped and never goes on must not hold up
the others for ever."""


def lock_folder(cache: Path) -> Path:
    """Where the locks of those who use a cache lie."""
    return cache.parent / "locks"


class Claims:
    """The keys that are being asked for. A claim is a lock, spread over sixteen files: the kernel
    searches a file's locks one by one."""

    def __init__(self, folder: Path) -> None:
        """`folder` holds the lock files of a home."""
        self._folder = folder

    @classmethod
    def beside(cls, cache: Path) -> Self:
        """The claims of all who use the cache at that path."""
        return cls(lock_folder(cache))

    def take(self, key: str) -> bool:
        """Claims a sha256 in hexadecimal unless somebody else has; says whether it did. Raises
        `StorageError` where the disk refuses."""
        return self._locks(key).take(self._offset(key))

    def give(self, keys: Iterable[str]) -> None:
        """Ends claims of one's own."""
        for key in keys:
            self._locks(key).give(self._offset(key))

    def _locks(self, key: str) -> ByteLocks:
        return ByteLocks.at(self._folder / f"claims-{key[0]}")

    @staticmethod
    def _offset(key: str) -> int:
        return int(key[1:16], 16)


class Pace:
    """The waits of one who waits for another process: short at first, and bounded in all."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._next_s = FIRST_POLL_S
        self._until = time.monotonic() + patience_s

    async def wait(self) -> None:
        await asyncio.sleep(self._next_s)
        self._next_s = min(LONGEST_POLL_S, 1.5 * self._next_s)

    @property
    def over(self) -> bool:
        """Whether it was waited long enough."""
        return time.monotonic() >= self._until


class Flights(Generic[T]):
    """The requests that are under way on one event loop, by their keys."""

    def __init__(self, claims: Claims, patience_s: float = PATIENCE_S) -> None:
        self._claims, self._patience_s = claims, patience_s
        self._under_way: dict[str, asyncio.Future[None]] = {}

    async def once(
        self, key: str, look: Callable[[], T | None], ask: Callable[[], Awaitable[T]]
    ) -> T:
        """What `look` finds in the cache, else what `ask` brings and stores there.

        Who waits for somebody else of this process shares a failure; where the other was cancelled,
        or was another process, the next one asks. The time spent waiting for others is idle time of
        the ledger in force.
        """
        found = look()
        if found is not None:
            return found

        began, waited = time.perf_counter(), False
        while (others := self._under_way.get(key)) is not None:
            waited = True
            await asyncio.shield(others)
            found = look()
            if found is not None:
                current_ledger().idle_s += time.perf_counter() - began
                return found

        if waited:
            current_ledger().idle_s += time.perf_counter() - began

        own = self.begin([key])
        try:
            outcome = await self._alone(key, look, ask)
        except MemevalError as error:
            self.end(own, error)
            raise
        finally:
            self.end(own)

        return outcome

    async def _alone(
        self, key: str, look: Callable[[], T | None], ask: Callable[[], Awaitable[T]]
    ) -> T:
        """As `once`, for the first one of this process."""
        began, pace = time.perf_counter(), Pace(self._patience_s)
        while not (claimed := self._claims.take(key)) and not pace.over:
            await pace.wait()

        try:
            current_ledger().idle_s += time.perf_counter() - began
            found = look()  # another process may have stored it before it let go
            return found if found is not None else await ask()
        finally:
            if claimed:
                self._claims.give([key])

    def begin(self, keys: Iterable[str]) -> Mapping[str, asyncio.Future[None]]:
        """Notes that the keys, of which none is under way, are being asked for."""
        loop = asyncio.get_running_loop()
        own = {key: loop.create_future() for key in keys}
        self._under_way |= own
        return own

    def end(
        self, own: Mapping[str, asyncio.Future[None]], error: MemevalError | None = None
    ) -> None:
        """Tells those who wait that the flights are over, and how they failed."""
        for key, future in own.items():
            if future.done():
                continue

            del self._under_way[key]
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
                future.exception()  # looked at here: nobody need be waiting

    def others(self, key: str) -> asyncio.Future[None] | None:
        """The flight of a key that is under way on this loop."""
        return self._under_way.get(key)
