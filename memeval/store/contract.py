"""What a run needs of the place where its rows, replies and locks are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from memeval.llm.cache import Cache
from memeval.llm.cache_contract import ReplyCache
from memeval.llm.flight import lock_folder
from memeval.llm.locks import Locks, locks_in
from memeval.results.shared_lines import SharedRows, SharedTexts

Say = Callable[[str], None]


class Store(Protocol):
    """Files and SQLite in the home, or a database that several machines share."""

    def cache(self, name: str, say: Say | None) -> ReplyCache:
        """The cache of that name; `say` gets the messages about it."""

    def locks(self, name: str) -> Locks:
        """The locks of that name; the same object each time."""

    def rows(self, path: Path) -> SharedRows | None:
        """The shared rows of which a file is the copy; None where the file is all there is."""

    def texts(self, path: Path) -> SharedTexts | None:
        """The shared texts of which a file is the copy; None where the file is all there is."""


class FileStore:
    """The default: files of rows, caches in SQLite, locked bytes."""

    def __init__(self, cache: Path) -> None:
        """`cache` is the folder of the caches."""
        self._cache = cache
        self._locks = locks_in(lock_folder(cache / "responses.sqlite"))

    def cache(self, name: str, say: Say | None) -> ReplyCache:
        return Cache(self._cache / f"{name}.sqlite", say)

    def locks(self, name: str) -> Locks:
        return self._locks(name)

    def rows(self, path: Path) -> None:
        return None

    def texts(self, path: Path) -> None:
        return None
