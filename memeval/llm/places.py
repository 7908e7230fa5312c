"""The places at an endpoint: they limit the requests under way at once, over all processes of a
home.

A place is a lock, by default of a byte of a file, so that a process that dies gives its places
back. Within a process a place is handed on directly. Between processes each gets an equal share
while all have work, and what one leaves idle the others take. Where processes name different
limits, the lowest holds for all of them as long as its process runs.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import TracebackType
from typing import Self

from memeval.llm.locks import LocksByName, locks_in
from memeval.llm.shared_places import SharedPlaces


class Places:
    """The places at one address under one key.

    `async with places: ...` holds one of them. Several event loops and threads may use it.
    """

    def __init__(self, where: Path | LocksByName, address: str, key: str, limit: int) -> None:
        """`where` is the folder with the lock files of a home, or what gives locks by name.

        Raises `StorageError` where it can't be written.
        """
        name = hashlib.sha256(f"{address}\n{key}".encode()).hexdigest()[:32]
        self._shared = SharedPlaces.of(locks_in(where)(f"places-{name}"))
        self.limit = limit
        self._shared.enter(self)

    def lower(self, limit: int) -> None:
        """Asks for fewer places from now on."""
        self.limit = min(self.limit, limit)
        self._shared.tell()

    def close(self) -> None:
        """Gives this handle up; its limit no longer counts."""
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
