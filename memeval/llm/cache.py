"""The response cache: what was paid for once is never paid for again, across cells, processes and
crashes.

Content-addressed (provider, endpoint, model, messages, sampling parameters, seed, scope), JSON in
SQLite. Errors and empty answers are never stored. Each entry has a checksum; one that does not fit
is dropped, and asked for again. A damaged file is kept beside, and what is sound in it is carried
over.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from memeval.errors import StorageError
from memeval.llm import salvage
from memeval.llm.cache_schema import WrongSchema, checksum, companions, make_tables

T = TypeVar("T")

_SELECT = (
    "SELECT e.key, e.value, e.origin, s.crc, s.tokens FROM entries e LEFT JOIN seals s ON s.key "
    "= e.key WHERE e.key "
)
_KEYS_AT_ONCE = 500
"""Keys that one statement asks for: SQLite bounds the parameters of a statement."""
_WAIT_S = 60.0
"""How long a write waits for those of other processes."""
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
_IN_THE_WAY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
"""What SQLite says where a folder lies at the name of one of its files, among other things."""
_DAMAGE_WORDS = ("no such table", "unsupported file format")
"""What SQLite says of a damaged schema, without a code of its own."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedEntry:
    """A stored value and the run that paid for it."""

    value: bytes
    origin: str
    tokens: int | None = None
    """Its part of the tokens that the endpoint reported for the request; None where it reported
    none, or the value says so itself."""


class Cache:
    """A key-value store on disk that several processes may use at once. Raises `StorageError` where
    the disk refuses."""

    def __init__(self, path: Path, say: Callable[[str], None] | None = None) -> None:
        """`say` gets messages of damage, and of what was kept; without it they are logged."""
        self.path = path
        self._say = say or _log.warning
        self._lock = threading.Lock()
        self._dropped = 0
        self._repairs = FileLock(f"{path}.lock", thread_local=False, is_singleton=False)
        self._connection, self._identity = self._open()

    def get(self, key: str) -> CachedEntry | None:
        """What is stored under `key`; None where nothing sound is."""
        return self.get_all([key]).get(key)

    def get_all(self, keys: Iterable[str]) -> dict[str, CachedEntry]:
        """What is stored under each of `keys`, those left out under which nothing sound is."""
        wanted = list(keys)
        found: dict[str, CachedEntry] = {}

        for start in range(0, len(wanted), _KEYS_AT_ONCE):
            some = wanted[start : start + _KEYS_AT_ONCE]
            with self._lock:
                rows = self._select(some)
                if len(rows) < len(some) and self._moved():
                    rows = self._select(some)

                found |= self._sound(rows)

        return found

    def _select(self, keys: list[str]) -> list[tuple[Any, ...]]:
        statement = _SELECT + ("= ?" if len(keys) == 1 else f"IN ({','.join('?' * len(keys))})")
        return self._attempt(lambda connection: connection.execute(statement, keys).fetchall())

    def _sound(self, rows: list[tuple[Any, ...]]) -> dict[str, CachedEntry]:
        """The entries that are as they were stored; the others are dropped."""
        sound: dict[str, CachedEntry] = {}
        for key, value, origin, crc, tokens in rows:
            data = value.encode() if isinstance(value, str) else value
            if (
                isinstance(data, bytes)
                and isinstance(origin, str)
                and crc in (None, checksum(key, data, origin, tokens))
            ):
                sound[key] = CachedEntry(data, origin, tokens)
            else:
                self._drop(key)
                self._tell_of_dropped(key)

        return sound

    def _tell_of_dropped(self, key: str) -> None:
        self._dropped += 1
        if self._dropped == 1:
            self._say(
                f"the cache {self.path} had a damaged entry ({key[:12]}…): it is dropped and "
                "requested again"
            )

    def put(self, key: str, value: bytes, origin: str) -> None:
        """Stores `value`; the first writer of a key wins."""
        self.put_all({key: value}, origin)

    def put_all(
        self, values: Mapping[str, bytes], origin: str, tokens: Mapping[str, int] | None = None
    ) -> None:
        """Stores all of `values` or none, each with its part of the reported `tokens`; the first
        writer of a key wins."""

        def write(connection: sqlite3.Connection) -> None:
            for key, value in values.items():
                part = tokens.get(key) if tokens else None
                added = connection.execute(
                    "INSERT OR IGNORE INTO entries (key, value, origin) VALUES (?, ?, ?)",
                    (key, value, origin),
                )
                if added.rowcount == 1:
                    seal = (key, checksum(key, value, origin, part), part)
                    connection.execute("INSERT OR REPLACE INTO seals VALUES (?, ?, ?)", seal)

        with self._lock:
            self._moved()
            self._attempt(lambda connection: _transaction(connection, write))

    def replace(self, key: str, value: bytes, origin: str) -> None:
        """Stores `value` over whatever lies under `key`: for an entry that turned out to be
        unsound."""
        with self._lock:
            self._drop(key)

        self.put(key, value, origin)

    def delete(self, key: str) -> None:
        """Forgets what lies under `key`."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: str) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM entries WHERE key = ?", (key,))
            connection.execute("DELETE FROM seals WHERE key = ?", (key,))

        self._attempt(lambda connection: _transaction(connection, write))

    def close(self) -> None:
        with self._lock:
            self._connection.close()

        if self._dropped > 1:
            self._say(
                f"the cache {self.path} had {self._dropped} damaged entries: they were dropped "
                "and requested again"
            )
            self._dropped = 0

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` brings; where the file turns out to be damaged, it is repaired first."""
        try:
            return work(self._connection)
        except sqlite3.Error as error:
            if not self._is_damage(error) and not _is_moved(error):
                raise StorageError(self._refusal(error)) from error

            self._reopen(error)

        try:
            return work(self._connection)
        except sqlite3.Error as error:
            raise StorageError(self._refusal(error)) from error

    def _moved(self) -> bool:
        """Opens the file again where another process has repaired it, or somebody put another in
        its place; says whether it did."""
        if _identity(self.path) == self._identity:
            return False

        self._reopen(None)
        return True

    def _reopen(self, error: sqlite3.Error | None) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()

        if error is not None and _identity(self.path) != self._identity:
            error = None  # what was damaged lies there no more

        self._connection, self._identity = self._open(error)

    def _open(self, error: sqlite3.Error | None = None) -> tuple[sqlite3.Connection, Any]:
        """A connection to the file and which file that is; `error` is what showed that the file is
        damaged.

        One process at a time opens or repairs it: who comes second finds it repaired.
        """
        before = _identity(self.path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._repairs:
                kept = salvage.finish(self.path)
                if error is not None and _identity(self.path) == before:
                    kept = self._repaired(error)

                try:
                    connection = self._connect()
                except sqlite3.Error as damage:
                    if not self._is_damage(damage):
                        raise

                    kept = self._repaired(damage)
                    connection = self._connect()

                identity = _identity(self.path)
        except sqlite3.Error as refused:
            raise StorageError(self._refusal(refused)) from refused
        except OSError as refused:
            raise StorageError(
                f"the cache {self.path} can't be opened: {refused.strerror or refused}"
            ) from refused

        if kept is not None:
            self._say(kept)

        return connection, identity

    def _repaired(self, damage: sqlite3.Error) -> str:
        """Puts the file aside, carries over what is sound, and says so."""
        self._say(
            f"the cache {self.path} is damaged ({damage}): its sound entries are being copied"
        )
        salvage.put_aside(self.path)
        kept = salvage.finish(self.path)
        assert kept is not None, "the file was put aside"

        return kept

    def _connect(self) -> sqlite3.Connection:
        if self.path.is_file() and not self.path.stat().st_size:
            raise WrongSchema(
                "it is empty"
            )  # SQLite would take it for a new one, and lose the log with it

        connection = sqlite3.connect(
            self.path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.text_factory = _text
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            make_tables(connection)
        except BaseException:
            connection.close()
            raise

        return connection

    def _is_damage(self, error: sqlite3.Error) -> bool:
        """Whether the file itself is at fault, and not the disk or its rights."""
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in _IN_THE_WAY and code != sqlite3.SQLITE_IOERR_SHORT_READ:
            return any(path.is_dir() for path in (self.path, *companions(self.path)))
        if isinstance(error, WrongSchema) or str(error).startswith(_DAMAGE_WORDS):
            return True

        return code & 0xFF in _DAMAGE or code == sqlite3.SQLITE_IOERR_SHORT_READ

    def _refusal(self, error: sqlite3.Error) -> str:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL or (
            code == sqlite3.SQLITE_IOERR and _is_full(self.path.parent)
        ):
            return f"the cache {self.path} can't be written: no space left on the disk"

        if code == sqlite3.SQLITE_READONLY:
            return f"the cache {self.path} can't be written: it is read-only (mend: chmod u+w)"

        return f"the cache {self.path} can't be used: {error}"


def content_key(content: Mapping[str, Any]) -> str:
    """sha256 of `content` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _transaction(
    connection: sqlite3.Connection, write: Callable[[sqlite3.Connection], None]
) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        write(connection)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")

        raise


def _text(data: bytes) -> str:
    """Damaged text is still text: only its checksum shows the damage."""
    return data.decode("utf-8", errors="replace")


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file lies at `path`."""
    try:
        found = os.stat(path)  # noqa: PTH116 - before every write: a Path's own stat takes twice as long
    except OSError:
        return None

    return found.st_dev, found.st_ino


def _is_moved(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < 1_000_000 or os.statvfs(folder).f_favail == 0
    except (OSError, AttributeError):
        return False
