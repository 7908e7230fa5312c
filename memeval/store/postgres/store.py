"""The store of `store.url=postgresql://…`."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from memeval.llm.cache_contract import ReplyCache
from memeval.store.contract import Say
from memeval.store.postgres.cache import PostgresCache
from memeval.store.postgres.database import Database
from memeval.store.postgres.leases import LeasedLocks, RowLeases
from memeval.store.postgres.lines import PostgresRows, PostgresTexts

T = TypeVar("T")


class PostgresStore:
    """One database, shared by all processes that name it."""

    def __init__(self, database: Database, folder: Path) -> None:
        """`folder` is the folder of the home's caches."""
        self._database, self._folder = database, folder

    def cache(self, name: str, say: Say | None) -> ReplyCache:
        leases = RowLeases(self._database, self.locks)
        kept = self._folder / f"kept-{name}.sqlite"
        return PostgresCache(self._database, name, leases, kept, say)

    async def call(self, work: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        return await self._database.call(work, undo)

    def locks(self, name: str) -> LeasedLocks:
        """The locks with a name; the same object each time."""
        with _making:
            locks = _locks.setdefault(self._database.holder, {})
            if name not in locks:
                locks[name] = LeasedLocks(self._database, name)

            return locks[name]

    def rows(self, path: Path) -> PostgresRows:
        name = _name_of(path)
        return PostgresRows(self._database, name, self.locks(f"rows-{name}"))

    def texts(self, path: Path) -> PostgresTexts:
        return PostgresTexts(self._database, _name_of(path))

    def names(self) -> Sequence[str]:
        """The names of the files of rows and of texts whose lines the database contains."""
        rows = self._database.run(
            "SELECT name FROM memeval_rows UNION SELECT name FROM memeval_texts ORDER BY name"
        )
        return [str(row[0]) for row in rows]

    def caches(self) -> Sequence[str]:
        """The names of the caches whose entries the database contains."""
        rows = self._database.run("SELECT DISTINCT cache FROM memeval_entries ORDER BY cache")
        return [str(row[0]) for row in rows]


def _name_of(path: Path) -> str:
    """The name of a file in the store, regardless of where the home is: `answers/<key>.jsonl`."""
    return f"{path.parent.name}/{path.name}"


_locks: dict[str, dict[str, LeasedLocks]] = {}
"""By holder, because a forked process is a different holder."""
_making = threading.Lock()
