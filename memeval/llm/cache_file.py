"""The cache's file: tables, checksums, companion files and the meaning of SQLite's errors."""

import os
import shutil
import sqlite3
import zlib
from collections.abc import Sequence
from pathlib import Path

from memeval.llm.cache_contract import CachedEntry

SELECT_ENTRIES = (
    "SELECT e.key, e.value, e.origin, s.crc, s.tokens FROM entries e LEFT JOIN seals s ON s.key "
    "= e.key"
)
"""Selects the rows that `sound_entry` reads."""
WAIT_S = 60.0
"""Seconds that a statement waits for statements of other processes."""
_TABLES = {
    "entries": "(key TEXT PRIMARY KEY, value BLOB NOT NULL, origin TEXT NOT NULL",
    "seals": "(key TEXT PRIMARY KEY, crc INTEGER NOT NULL, tokens INTEGER",
}
"""The stored entries, and their checksums. A later version may add columns."""
_COMPANIONS = ("-wal", "-shm", "-journal")

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
_IN_THE_WAY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
"""SQLite's error codes if, among other causes, a folder has the name of one of its files."""
_DAMAGE_WORDS = ("no such table", "unsupported file format")
"""Beginnings of SQLite's messages for a damaged schema, which has no separate error code."""


class WrongSchema(sqlite3.DatabaseError):
    """An intact database that is not a memeval cache."""


def make_tables(connection: sqlite3.Connection) -> None:
    """Creates the missing tables. Raises `WrongSchema` for another program's database."""
    stored = dict(connection.execute("SELECT name, sql FROM sqlite_master"))
    if stored and "entries" not in stored:
        raise WrongSchema("it is another program's database")

    for name, columns in _TABLES.items():
        statement = f"CREATE TABLE {name} {columns}"
        if name not in stored:
            connection.execute(f"{statement}) WITHOUT ROWID")
        elif not str(stored[name]).startswith(statement):
            raise WrongSchema(f"its table {name} has other columns")


def add_entry(connection: sqlite3.Connection, key: str, entry: CachedEntry) -> bool:
    """Adds an entry, unless its key is stored already; returns whether it did."""
    added = connection.execute(
        "INSERT INTO entries (key, value, origin) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (key, entry.value, entry.origin),
    )
    # The checksum must match the stored value, and another process may have stored its own first.
    if added.rowcount != 1:
        return False

    crc = checksum(key, entry.value, entry.origin, entry.tokens)
    seal = (key, crc, entry.tokens)
    connection.execute("INSERT OR REPLACE INTO seals (key, crc, tokens) VALUES (?, ?, ?)", seal)
    return True


def checksum(key: str, value: bytes, origin: str, tokens: int | None) -> int:
    """The checksum of a stored entry. It detects damage, but not deliberate edits."""
    return zlib.crc32(value, zlib.crc32(f"{key}\n{origin}\n{tokens}\n".encode(errors="replace")))


def sound_entry(row: Sequence[object]) -> CachedEntry | None:
    """The entry in a row of key, value, origin, checksum and tokens; None if they do not match."""
    key, value, origin, crc, tokens = row
    data = value.encode() if isinstance(value, str) else value
    if not (isinstance(key, str) and isinstance(data, bytes) and isinstance(origin, str)):
        return None
    if tokens is not None and not isinstance(tokens, int):
        return None

    is_sound = crc == checksum(key, data, origin, tokens)
    return CachedEntry(data, origin, tokens) if is_sound else None


def decode_text(data: bytes) -> str:
    """Decodes text, damaged or not: damage is detected by the checksum only."""
    return data.decode("utf-8", errors="replace")


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A read-only connection that changes nothing, not even in a cache that a run has open."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    # SQLite would create its companions, which it can't on a read-only disk.
    if not (os.access(path.parent, os.W_OK) or any(file.exists() for file in companions(path))):
        uri += "&immutable=1"

    connection = sqlite3.connect(uri, uri=True, timeout=WAIT_S)
    connection.text_factory = decode_text
    return connection


def companions(path: Path) -> list[Path]:
    """The files that SQLite keeps next to a database."""
    return [path.with_name(path.name + suffix) for suffix in _COMPANIONS]


def is_damage(error: sqlite3.Error, path: Path) -> bool:
    """Whether the file itself is damaged, as opposed to a fault of the disk or permissions."""
    # The low byte is the primary code; the rest refines it.
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF in _IN_THE_WAY and code != sqlite3.SQLITE_IOERR_SHORT_READ:
        return any(file.is_dir() for file in (path, *companions(path)))
    if isinstance(error, WrongSchema) or str(error).startswith(_DAMAGE_WORDS):
        return True

    return code & 0xFF in _DAMAGE or code == sqlite3.SQLITE_IOERR_SHORT_READ


def describe(error: sqlite3.Error, path: Path) -> str:
    """The message for an error that is not damage."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # SQLite reports a full disk as an I/O error if it can't extend its log.
    is_full = code == sqlite3.SQLITE_IOERR and _is_full(path.parent)
    if code == sqlite3.SQLITE_FULL or is_full:
        return f"the cache {path} can't be written: no space left on the disk"

    if code == sqlite3.SQLITE_READONLY:
        return f"the cache {path} can't be written: it is read-only (to fix: chmod u+w)"

    return f"the cache {path} can't be used: {error}"


def identity_of(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at `path`; None if there is no file."""
    try:
        # Called before every write; `Path.stat` takes twice as long.
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None

    return status.st_dev, status.st_ino


def is_moved(error: sqlite3.Error) -> bool:
    """Whether the open file no longer has its name, because it was moved aside."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < 1_000_000 or os.statvfs(folder).f_favail == 0
    except OSError:
        return False
