"""The tables of the cache, and the checksum of an entry."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

_TABLES = {
    "entries": (
        "CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB NOT NULL, origin TEXT NOT NULL)"
        " WITHOUT ROWID"
    ),
    "seals": (
        "CREATE TABLE seals (key TEXT PRIMARY KEY, crc INTEGER NOT NULL, tokens INTEGER)"
        " WITHOUT ROWID"
    ),
}
"""The stored entries, and their checksums."""
_COLUMNS = {"entries": ("key", "value", "origin"), "seals": ("key", "crc", "tokens")}
_COMPANIONS = ("-wal", "-shm", "-journal")


class WrongSchema(sqlite3.DatabaseError):
    """A sound database that is not a cache of memeval."""


def make_tables(connection: sqlite3.Connection) -> None:
    """Makes the missing tables. Raises `WrongSchema` for another program's database."""
    types = dict(connection.execute("SELECT name, type FROM sqlite_master"))
    if types and "entries" not in types:
        raise WrongSchema("it is another program's database")

    for name, statement in _TABLES.items():
        if name not in types:
            connection.execute(statement)
        elif types[name] != "table" or not _fits(connection, name):
            raise WrongSchema(f"its table {name} has other columns")


def _fits(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a table has our columns and our key."""
    # A later version may add columns, as long as a row of ours can leave them out.
    columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
    own, further = columns[: len(_COLUMNS[name])], columns[len(_COLUMNS[name]) :]
    if tuple(column[1] for column in own) != _COLUMNS[name]:
        return False

    keys = [column[1] for column in columns if column[5]]

    return keys == ["key"] and all(not column[3] or column[4] is not None for column in further)


def checksum(key: str, value: bytes, origin: str, tokens: int | None) -> int:
    """The checksum of a stored entry. It detects a flipped bit, but not a forger."""
    return zlib.crc32(value, zlib.crc32(f"{key}\n{origin}\n{tokens}\n".encode(errors="replace")))


def companions(path: Path) -> list[Path]:
    """The files that SQLite keeps beside a database."""
    return [path.with_name(path.name + suffix) for suffix in _COMPANIONS]
