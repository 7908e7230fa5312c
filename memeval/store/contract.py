"""Contract of the store that keeps a run's rows, replies and leases."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from memeval.llm.cache import Cache
from memeval.llm.cache_contract import ReplyCache
from memeval.results.shared_lines import SharedRows, SharedTexts

T = TypeVar("T")
Say = Callable[[str], None]


class Store(Protocol):
    """Files and SQLite in the home, or a database that several machines share."""

    def cache(self, name: str, say: Say | None) -> ReplyCache:
        """The cache of that name; `say` gets the messages about it."""

    async def call(self, work: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        """The result of `work`, off the event loop; `undo` gets it if the caller is cancelled."""

    def rows(self, path: Path) -> SharedRows | None:
        """The shared rows that a file is a copy of; None if there is only the file."""

    def texts(self, path: Path) -> SharedTexts | None:
        """The shared texts that a file is a copy of; None if there is only the file."""


class FileStore:
    """The default: rows in files, caches in SQLite, leases as locked bytes."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def cache(self, name: str, say: Say | None) -> ReplyCache:
        return Cache(self._cache / f"{name}.sqlite", say)

    async def call(self, work: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        return work()

    def rows(self, path: Path) -> None:
        return None

    def texts(self, path: Path) -> None:
        return None
