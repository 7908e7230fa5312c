"""The files of rows that are open in this process.

Cells that differ only in their judge use the same file of answers. They also share its rows in
memory: the second cell finds what the first one makes, and the lock on the file does not keep it
out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

T = TypeVar("T", bound=AbstractContextManager[Any])

FIRST_WAIT_S, LONGEST_WAIT_S = 0.05, 0.5
"""Between two looks whether another process is done with a file."""


class FileIsBusyError(Exception):
    """Another process holds the file."""


def refuse_to_wait(path: Path) -> None:
    """For a store's `on_wait`: the event loop must not block while another process works."""
    raise FileIsBusyError(path)


@dataclass
class _Open:
    store: AbstractContextManager[Any]
    users: int = 0


@dataclass
class _Unit:
    lock: asyncio.Lock
    users: int = 0


class Stores:
    """Opens each file once, and closes it behind the last cell that uses it."""

    def __init__(self) -> None:
        self._open: dict[Path, _Open] = {}
        self._units: dict[tuple[Path, str], _Unit] = {}

    @asynccontextmanager
    async def open_store(
        self, path: Path, make: Callable[[], T], busy: Callable[[Path], Awaitable[None]]
    ) -> AsyncIterator[T]:
        """The open store of a path, which `make` makes where it is not open yet.

        `busy` is awaited once where another process holds the file.

        Raises `StorageError` where the file can't be opened.
        """
        store = self._enter(path, make)
        if store is None:
            await busy(path)
            store = await self._wait(path, make)

        try:
            yield store
        finally:
            self._leave(path)

    async def _wait(self, path: Path, make: Callable[[], T]) -> T:
        wait_s = FIRST_WAIT_S
        while (store := self._enter(path, make)) is None:
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

        return store

    def _enter(self, path: Path, make: Callable[[], T]) -> T | None:
        known = self._open.get(path)
        if known is None:
            # By hand, and not in a `with`: the store outlives the cell that opened it.
            store = make()
            try:
                store.__enter__()
            except FileIsBusyError:
                return None

            known = self._open[path] = _Open(store)

        known.users += 1

        return cast(T, known.store)

    def _leave(self, path: Path) -> None:
        known = self._open[path]
        known.users -= 1
        if not known.users:
            del self._open[path]
            known.store.__exit__(None, None, None)

    @asynccontextmanager
    async def unit(self, path: Path, case_id: str) -> AsyncIterator[None]:
        """Lets one cell at a time work on a case in a file of answers.

        The second cell then finds what the first one made.
        """
        unit = self._units.setdefault((path, case_id), _Unit(asyncio.Lock()))
        unit.users += 1
        try:
            async with unit.lock:
                yield
        finally:
            unit.users -= 1
            # Locks of all cases of a large file would add up.
            if not unit.users:
                del self._units[path, case_id]
