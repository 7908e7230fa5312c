"""The response cache: what was paid for once is never paid for again, across cells, processes and crashes.

Content-addressed (provider, endpoint, model, messages, sampling parameters, seed, scope), JSON in SQLite. Errors and empty answers are
never stored.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memeval.errors import StorageError

_SCHEMA = "CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value BLOB NOT NULL, origin TEXT NOT NULL) WITHOUT ROWID"


@dataclass(frozen=True, slots=True)
class CachedEntry:
    """A stored value and the run that paid for it."""

    value: bytes
    origin: str


class Cache:
    """A key-value store on disk that several processes may use at once. Raises `StorageError` where the disk refuses."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return self._connect()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                self.path.replace(self.path.with_suffix(".damaged"))
                return self._connect()
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"the cache {self.path} can't be opened: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(_SCHEMA)
        return connection

    def get(self, key: str) -> CachedEntry | None:
        with self._lock:
            row = self._run("SELECT value, origin FROM entries WHERE key = ?", (key,)).fetchone()
        return CachedEntry(*row) if row else None

    def put(self, key: str, value: bytes, origin: str) -> None:
        """Stores `value`; the first writer of a key wins."""
        with self._lock:
            self._run("INSERT OR IGNORE INTO entries VALUES (?, ?, ?)", (key, value, origin))

    def replace(self, key: str, value: bytes, origin: str) -> None:
        """Stores `value` over whatever lies under `key`: for an entry that turned out to be unsound."""
        with self._lock:
            self._run("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", (key, value, origin))

    def _run(self, statement: str, values: tuple[Any, ...]) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.Error as error:
            raise StorageError(f"the cache {self.path} can't be used: {error}") from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def content_key(content: Mapping[str, Any]) -> str:
    """sha256 of `content` as canonical JSON."""
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    ).hexdigest()
