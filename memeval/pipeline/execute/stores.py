"""The open files of rows, shared by cells that differ only in their judge."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast
from weakref import WeakValueDictionary

from msgspec import Struct

from memeval.results.store import FileIsBusyError

T = TypeVar("T", bound=AbstractContextManager[Any])
R = TypeVar("R")

FIRST_WAIT_S, LONGEST_WAIT_S = 0.05, 0.5
"""First and longest wait between checks whether another process has released a file."""
CLOSING_S = 5.0
"""Maximum wait at a cell's end for a file to be closed."""
Unit = tuple[Path, str | None]
"""A file, and a case in it."""
OPENING = None
"""Used in `Stores.unit` instead of a case while a file is opened or closed."""


class StoreCaller(Protocol):
    """Runs work that uses a store, in a thread if the work would block the event loop."""

    async def __call__(
        self, work: Callable[[], R], undo: Callable[[R], object] | None = None
    ) -> R: ...


class _OpenStore(Struct):
    store: AbstractContextManager[Any]
    users: int = 0


class Stores:
    """Opens each file once, and closes it after the last cell that uses it."""

    def __init__(self) -> None:
        self._open: dict[Path, _OpenStore] = {}
        # Weak: otherwise the locks of all cases of a large file would add up.
        self._locks: WeakValueDictionary[Unit, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def open_store(
        self,
        path: Path,
        make: Callable[[], T],
        on_busy: Callable[[Path], Awaitable[None]],
        call: StoreCaller,
    ) -> AsyncIterator[T]:
        """The open store of a path, created if needed. Raises `StorageError`.

        `on_busy` is awaited once if another process holds the file; `call` opens and closes it.
        """
        store = await self._enter(path, make, call)
        if store is None:
            await on_busy(path)
            store = await self._wait(path, make, call)

        try:
            yield store
        finally:
            await self._leave(path, call)

    async def _wait(self, path: Path, make: Callable[[], T], call: StoreCaller) -> T:
        wait_s = FIRST_WAIT_S
        while (store := await self._enter(path, make, call)) is None:
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

        return store

    async def _enter(self, path: Path, make: Callable[[], T], call: StoreCaller) -> T | None:
        # One at a time: another cell may open or close the same file in a thread meanwhile.
        async with self.unit(path, OPENING):
            opened = self._open.get(path)
            if opened is None:
                # Entered here, not by `with`: the store outlives the cell that opened it.
                store = make()
                try:
                    await call(store.__enter__, lambda _: store.__exit__(None, None, None))
                except FileIsBusyError:
                    return None

                opened = self._open[path] = _OpenStore(store)

            opened.users += 1

            return cast(T, opened.store)

    async def _leave(self, path: Path, call: StoreCaller) -> None:
        async with self.unit(path, OPENING):
            opened = self._open[path]
            opened.users -= 1
            if not opened.users:
                del self._open[path]
                # Don't wait longer for a store that doesn't respond: the lines are in the file.
                with suppress(TimeoutError):
                    async with asyncio.timeout(CLOSING_S):
                        await call(lambda: opened.store.__exit__(None, None, None))

    @asynccontextmanager
    async def unit(self, path: Path, case_id: str | None) -> AsyncIterator[None]:
        """Lets one cell at a time work on a case: the second finds the first one's results."""
        lock = self._locks.setdefault((path, case_id), asyncio.Lock())
        async with lock:
            yield
