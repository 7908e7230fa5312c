"""Errors of SQLite read as faults of the cache's file, and the identity of that file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from memeval.llm.cache_schema import WrongSchema, companions

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
_IN_THE_WAY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
"""SQLite's message if a folder has the name of one of its files, among other causes."""
_DAMAGE_WORDS = ("no such table", "unsupported file format")
"""SQLite's message for a damaged schema, which has no separate code."""


def is_damage(error: sqlite3.Error, path: Path) -> bool:
    """Whether the file itself is at fault, and not the disk or its permissions."""
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
    # SQLite reports a full disk as an error of input and output if it can't extend its log.
    is_full = code == sqlite3.SQLITE_IOERR and _is_full(path.parent)
    if code == sqlite3.SQLITE_FULL or is_full:
        return f"the cache {path} can't be written: no space left on the disk"

    if code == sqlite3.SQLITE_READONLY:
        return f"the cache {path} can't be written: it is read-only (to fix: chmod u+w)"

    return f"the cache {path} can't be used: {error}"


def identity_of(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at `path`; None without one."""
    try:
        # Called before every write, and a Path's own stat takes twice as long.
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None

    return status.st_dev, status.st_ino


def is_moved(error: sqlite3.Error) -> bool:
    """Whether the open file no longer has its name, because it was put aside."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < 1_000_000 or os.statvfs(folder).f_favail == 0
    except (OSError, AttributeError):
        return False
