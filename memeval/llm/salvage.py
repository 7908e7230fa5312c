"""Copies the sound entries of a damaged cache into a new file, row by row.

The damaged file is renamed first, so that other processes notice, and it is kept. Until the copy is
complete its name ends in `.salvage`: a repair that was killed is then done again. The new file gets
its name in one step. The caller holds the cache's lock.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from memeval.llm.cache_schema import checksum, companions, make_tables

_AT_ONCE = 1000
"""Rows that are read and written in one go."""
_DIGITS = 3
"""Digits of a key up to which keys are read apart, to pass over a damaged page."""
_HEADER, _PAGE = 100, 4096
"""Bytes of the file's header, and of the page that it begins."""
_UNREADABLE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)
_ENTRIES = (
    "INSERT OR IGNORE INTO entries (key, value, origin) VALUES (?, ?, ?)",
    "SELECT key, CAST(value AS BLOB), origin FROM entries WHERE key > ? AND key < ? "
    "AND typeof(value) IN ('blob', 'text') AND typeof(origin) = 'text'",
)
_SEALS = (
    "INSERT OR IGNORE INTO seals (key, crc, tokens) VALUES (?, ?, ?)",
    "SELECT key, crc, tokens FROM seals WHERE key > ? AND key < ? "
    "AND typeof(crc) = 'integer' AND typeof(tokens) IN ('integer', 'null')",
)


def put_aside(path: Path) -> None:
    """Renames the file at `path`, with the files that belong to it."""
    if path.exists():
        path.rename(_pending(path))
    else:
        _pending(path).touch()

    _move_companions(path, _pending(path))


def finish(path: Path) -> str | None:
    """Copies the file that was put aside into a new one at `path`.

    Returns a message about it, or None where no file was put aside.
    """
    pending = _pending(path)
    if not pending.exists():
        return None

    # Killed after the last step, a repair has nothing left to copy.
    kept = None if path.exists() else _copy(path, pending)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = (f"{path.name}.damaged-{stamp}{more}" for more in ("", *range(-2, -100, -1)))
    damaged = next(free for free in map(path.with_name, names) if not free.exists())
    pending.rename(damaged)
    _move_companions(pending, damaged)
    if kept is None:
        return None

    entries = f"{kept} entries were kept" if kept != 1 else "1 entry was kept"
    rest = "the others are" if kept else "its content is"
    return (
        f"the cache {path} was damaged: {entries}; {rest} requested again. "
        f"The damaged file is kept as {damaged.name}"
    )


def _pending(path: Path) -> Path:
    return path.with_name(f"{path.name}.salvage")


def _move_companions(path: Path, target: Path) -> None:
    # SQLite would take a log that is left here for the new file's.
    for source, goal in zip(companions(path), companions(target), strict=True):
        if not goal.exists():
            with suppress(FileNotFoundError):
                source.rename(goal)


def _copy(path: Path, damaged: Path) -> int:
    """Makes the file at `path` from the sound entries of a damaged one; returns their number."""
    _move_companions(path, damaged)
    fresh, mended = path.with_name(f"{path.name}.new"), path.with_name(f"{path.name}.mended")
    temporary = (fresh, *companions(fresh), mended, *companions(mended))
    for leftover in temporary:
        leftover.unlink(missing_ok=True)

    with closing(sqlite3.connect(fresh, isolation_level=None)) as target:
        # Without a journal, because the file gets its name only when it is complete: a repair that
        # is killed begins again.
        target.execute("PRAGMA journal_mode=OFF")
        target.execute("PRAGMA synchronous=OFF")
        make_tables(target)
        first_page = fresh.read_bytes()[:_PAGE]
        target.execute("BEGIN")

        _copy_rows(damaged, target)
        kept = _count(target)
        # Unread with its own header, the file may be read with that of an empty cache, or with
        # its whole first page, which also says where the tables begin.
        for length in (_HEADER, _PAGE):
            if not kept and damaged.is_file() and damaged.stat().st_size > _PAGE:
                _mend(damaged, mended, first_page[:length])
                _copy_rows(mended, target)
                kept = _count(target)

        _drop_unsound(target)
        kept = _count(target)
        target.execute("COMMIT")

    fresh.replace(path)
    for leftover in temporary:
        leftover.unlink(missing_ok=True)

    return kept


def _count(target: sqlite3.Connection) -> int:
    (count,) = target.execute("SELECT count(*) FROM entries").fetchone()
    return int(count)


def _mend(damaged: Path, mended: Path, beginning: bytes) -> None:
    """Copies a file with another beginning."""
    sources = (damaged, *companions(damaged))
    for source, goal in zip(sources, (mended, *companions(mended)), strict=True):
        if source.is_file():
            shutil.copyfile(source, goal)

    with mended.open("r+b") as file:
        file.write(beginning)
        # The number of the change for which the count of pages holds: with another one, SQLite
        # goes by the size of the file.
        file.seek(92)
        file.write(b"\xff" * 4)


def _copy_rows(damaged: Path, target: sqlite3.Connection) -> None:
    """Copies the rows that SQLite reads."""
    if not damaged.is_file():
        return

    reader = sqlite3.connect(f"{damaged.absolute().as_uri()}?mode=ro", uri=True)
    with closing(reader):
        # Damaged text must not raise: its checksum shows the damage.
        reader.text_factory = lambda data: data.decode("utf-8", errors="replace")
        for insert, select in (_ENTRIES, _SEALS):
            for rows in _read(reader, select, ""):
                target.executemany(insert, rows)


def _read(reader: sqlite3.Connection, select: str, prefix: str) -> Iterator[list[Any]]:
    """The rows whose keys begin with some digits.

    Behind a row that can't be read, rows are found by longer prefixes.
    """
    try:
        # Without it, SQLite does not open a file that is too short.
        reader.execute("PRAGMA writable_schema=ON")
        # Keys are hexadecimal, and `g` follows their last digit.
        cursor = reader.execute(select, (prefix, f"{prefix}g"))
        while rows := cursor.fetchmany(_AT_ONCE):
            yield rows
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _UNREADABLE and len(prefix) < _DIGITS:
            for digit in "0123456789abcdef":
                yield from _read(reader, select, prefix + digit)


def _drop_unsound(target: sqlite3.Connection) -> None:
    """Drops entries that don't match their checksum, and seals without an entry.

    An entry whose checksum could not be read must at least be JSON, and gets a new one.
    """
    unsound, unsealed = [], []
    for key, value, origin, crc, tokens in target.execute(
        "SELECT e.key, e.value, e.origin, s.crc, s.tokens FROM entries e"
        " LEFT JOIN seals s ON s.key = e.key"
    ):
        actual = checksum(key, value, origin, tokens)
        if crc is None and _is_json(value):
            unsealed.append((key, actual, None))
        elif crc != actual:
            unsound.append((key,))

    target.executemany("DELETE FROM entries WHERE key = ?", unsound)
    target.execute("DELETE FROM seals WHERE key NOT IN (SELECT key FROM entries)")
    target.executemany(_SEALS[0], unsealed)


def _is_json(value: bytes) -> bool:
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:
        return False
