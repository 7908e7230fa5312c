"""The response cache: every request is paid for only once, across cells, processes and crashes.

Keys are hashes of the content (provider, endpoint, model, messages, sampling parameters, seed,
scope); values are JSON in SQLite. Errors and empty answers are never stored. Each entry has a
checksum. An entry that does not match it is dropped and requested again. A damaged file is moved
aside, and its intact entries are copied.
"""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from memeval.errors import StorageError
from memeval.llm import salvage
from memeval.llm.cache_contract import CachedEntry, Damage
from memeval.llm.cache_file import (
    SELECT_ENTRIES,
    WAIT_S,
    WrongSchema,
    add_entry,
    decode_text,
    describe,
    identity_of,
    is_damage,
    is_moved,
    make_tables,
    sound_entry,
)
from memeval.llm.leases import FileLeases, leases_in
from memeval.text.names import text_digest

T = TypeVar("T")


class Cache:
    """A cache in SQLite that several processes share. Raises `StorageError` if the disk refuses."""

    def __init__(self, path: Path, say: Callable[[str], None] | None = None) -> None:
        """`say` gets the messages about damage and repair; without it they are logged."""
        self.path = path
        self._lock = threading.Lock()
        self._damage = Damage(f"the cache {path}", say)
        self._say = self._damage.say
        # The lock belongs to this object, not to a thread or a path: another thread may reopen the
        # file.
        self._repairs = FileLock(f"{path}.lock", thread_local=False, is_singleton=False)
        self._identity: tuple[int, int] | None = None
        self._open()

    async def call(self, work: Callable[[], T]) -> T:
        """The result of `work`, run in this thread: reading a file is faster than a new thread."""
        return work()

    def get_all(self, keys: Iterable[str]) -> dict[str, CachedEntry]:
        wanted = list(keys)
        with self._lock:
            rows = self._select(wanted)
            # Rows may be missing because another process has replaced the file.
            if len(rows) < len(wanted) and self._reopen_moved():
                rows = self._select(wanted)

            return self._sound(rows)

    def _select(self, keys: list[str]) -> list[tuple[Any, ...]]:
        # As JSON: SQLite limits the parameters of a statement.
        statement = f"{SELECT_ENTRIES} WHERE e.key IN (SELECT value FROM json_each(?))"
        values = (json.dumps(keys),)
        return self._attempt(lambda connection: connection.execute(statement, values).fetchall())

    def _sound(self, rows: list[tuple[Any, ...]]) -> dict[str, CachedEntry]:
        """The entries that match their checksums; drops the others."""
        sound: dict[str, CachedEntry] = {}
        for row in rows:
            key, entry = row[0], sound_entry(row)
            if entry is not None:
                sound[key] = entry
            else:
                self._drop(key)
                self.note_unsound(key)

        return sound

    def note_unsound(self, key: str) -> None:
        self._damage.note(key)

    def keys(self) -> set[str]:
        def read(connection: sqlite3.Connection) -> set[str]:
            return {str(key) for (key,) in connection.execute("SELECT key FROM entries")}

        with self._lock:
            return self._attempt(read)

    def put_all(
        self, values: Mapping[str, bytes], origin: str, tokens: Mapping[str, int] | None = None
    ) -> None:
        tokens = tokens or {}

        def write(connection: sqlite3.Connection) -> None:
            for key, value in values.items():
                add_entry(connection, key, CachedEntry(value, origin, tokens.get(key)))

        with self._lock:
            # Otherwise the reply would go into the damaged file that another process moved aside.
            self._reopen_moved()
            self._attempt(lambda connection: _transaction(connection, write))

    def delete(self, key: str) -> None:
        with self._lock:
            self._drop(key)

    forget = delete

    def _drop(self, key: str) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM entries WHERE key = ?", (key,))
            connection.execute("DELETE FROM seals WHERE key = ?", (key,))

        self._attempt(lambda connection: _transaction(connection, write))

    def leases(self) -> FileLeases:
        return leases_in(self.path.parent / "locks")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

        self._damage.close()

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of `work`. If the file is damaged, repairs it and retries `work` once."""
        try:
            return work(self._connection)
        except sqlite3.Error as error:
            if not is_damage(error, self.path) and not is_moved(error):
                raise StorageError(describe(error, self.path)) from error

            self._reopen(error)

        try:
            return work(self._connection)
        except sqlite3.Error as error:
            raise StorageError(describe(error, self.path)) from error

    def _reopen_moved(self) -> bool:
        """Reopens the cache if its path no longer names the open file; returns whether it did."""
        if identity_of(self.path) == self._identity:
            return False

        self._reopen(None)
        return True

    def _reopen(self, error: sqlite3.Error | None) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()

        self._open(error)

    def _open(self, error: sqlite3.Error | None = None) -> None:
        """Connects to the file; `error` is the error that showed damage, if any."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # One process at a time opens or repairs the file: the second one finds it repaired.
            with self._repairs:
                repaired = salvage.finish(self.path)
                # Skipped if another process has already moved the damaged file aside.
                if error is not None and identity_of(self.path) == self._identity:
                    repaired = self._repair(error)

                try:
                    self._connection = self._connect()
                except sqlite3.Error as damage:
                    if not is_damage(damage, self.path):
                        raise

                    repaired = self._repair(damage)
                    self._connection = self._connect()

                self._identity = identity_of(self.path)
        except sqlite3.Error as refused:
            raise StorageError(describe(refused, self.path)) from refused
        except OSError as refused:
            raise StorageError(
                f"the cache {self.path} can't be opened: {refused.strerror or refused}"
            ) from refused

        if repaired is not None:
            self._say(repaired)

    def _repair(self, damage: sqlite3.Error) -> str:
        """Moves the file aside and copies its intact entries; returns the message about it."""
        self._say(
            f"the cache {self.path} is damaged ({damage}): its intact entries are being copied"
        )
        salvage.put_aside(self.path)
        repaired = salvage.finish(self.path)
        assert repaired is not None, "the file was moved aside"

        return repaired

    def _connect(self) -> sqlite3.Connection:
        if self.path.is_file() and not self.path.stat().st_size:
            # SQLite would take an empty file for a new database, and drop the log next to it.
            raise WrongSchema("it is empty")

        connection = sqlite3.connect(
            self.path, timeout=WAIT_S, isolation_level=None, check_same_thread=False
        )
        try:
            # Before any statement reads text, because damaged text would raise.
            connection.text_factory = decode_text
            connection.execute("PRAGMA journal_mode=WAL")
            # With the write-ahead log, this setting never damages the file. A power cut may lose
            # the last replies, which are then requested again.
            connection.execute("PRAGMA synchronous=NORMAL")
            make_tables(connection)
        except BaseException:
            connection.close()
            raise

        return connection


def content_key(content: Mapping[str, Any]) -> str:
    """sha256 of `content` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text_digest(text)


def _transaction(
    connection: sqlite3.Connection, write: Callable[[sqlite3.Connection], None]
) -> None:
    with connection:
        # The write lock is taken at the start, where SQLite waits for other processes (`WAIT_S`).
        connection.execute("BEGIN IMMEDIATE")
        write(connection)
