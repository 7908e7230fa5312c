"""Copies the sound entries of a damaged cache into a new file.

The damaged file is renamed and kept. A note beside it names the file that is being read, so that a
repair that was killed is done again. The new file replaces the old one in one step. The caller
holds the cache's lock.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from memeval.llm import pages
from memeval.llm.cache_schema import checksum, companions, make_tables
from memeval.results import write_atomically

_AT_ONCE = 1000
"""Rows that are read and written in one go."""


def put_aside(path: Path) -> None:
    """Renames the file at `path` to `….damaged-<time>`, with the files that belong to it."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = [
        f"{path.name}.damaged-{stamp}",
        *(f"{path.name}.damaged-{stamp}-{number}" for number in range(2, 100)),
    ]
    target = next(free for free in map(path.with_name, names) if not free.exists())

    # The note comes first: a process that is killed after the renaming still finds the file.
    write_atomically(_note(path), json.dumps({"damaged": target.name}))
    if path.exists():
        path.rename(target)
    else:
        # `finish` ignores a note without a file: such a repair has not begun, or is done.
        target.touch()

    _move_companions(path, target)


def finish(path: Path) -> str | None:
    """Copies the file that was put aside into a new one at `path`.

    Returns a message about it, or None where no file was put aside.
    """
    damaged = _read_note(path)
    if damaged is None:
        return None

    # A process was killed before the first step, or after the last one.
    if not damaged.exists() or path.exists():
        _note(path).unlink()
        return None

    _move_companions(path, damaged)
    fresh = path.with_name(f"{path.name}.new")
    for leftover in (fresh, *companions(fresh)):
        leftover.unlink(missing_ok=True)

    kept = _build(damaged, fresh)
    fresh.replace(path)
    _note(path).unlink()

    entries = f"{kept} entries were kept" if kept != 1 else "1 entry was kept"
    rest = "the others are" if kept else "its content is"

    return (
        f"the cache {path} was damaged: {entries}; {rest} requested again. "
        f"The damaged file is kept as {damaged.name}"
    )


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.salvage")


def _read_note(path: Path) -> Path | None:
    """The file that the note names."""
    try:
        name = json.loads(_note(path).read_text(encoding="utf-8"))["damaged"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        name = ""

    prefix = f"{path.name}.damaged-"
    if (
        isinstance(name, str)
        and name.startswith(prefix)
        and name[len(prefix) :].replace("-", "").isdigit()
    ):
        return path.with_name(name)

    _note(path).unlink()

    return None


def _move_companions(path: Path, target: Path) -> None:
    # SQLite would take a log that is left here for the new file's.
    for source, goal in zip(companions(path), companions(target), strict=True):
        if not goal.exists():
            with suppress(FileNotFoundError):
                source.rename(goal)


def _build(damaged: Path, fresh: Path) -> int:
    """Writes the sound entries into a new file; returns their number."""
    with closing(sqlite3.connect(fresh, isolation_level=None)) as target:
        # Without a journal, because the file gets its name only when it is complete: a repair that
        # is killed begins again.
        target.execute("PRAGMA journal_mode=OFF")
        target.execute("PRAGMA synchronous=OFF")
        make_tables(target)
        target.execute("CREATE TEMP TABLE torn (key TEXT PRIMARY KEY) WITHOUT ROWID")
        target.execute("BEGIN")

        if damaged.is_file() and not _copy_tables(damaged, target):
            _copy_pages(damaged, target)

        _drop_unsound(target)

        (kept,) = target.execute("SELECT count(*) FROM entries").fetchone()
        target.execute("COMMIT")

    return int(kept)


def _copy_tables(damaged: Path, target: sqlite3.Connection) -> bool:
    """Copies the rows that SQLite still reads; returns whether it read to the end."""
    whole = True
    for insert, select in (
        (_insert_entries, "SELECT key, value, origin FROM entries"),
        (_insert_seals, "SELECT key, crc, tokens FROM seals"),
    ):
        try:
            reader = sqlite3.connect(f"{damaged.absolute().as_uri()}?mode=ro", uri=True)
        except sqlite3.Error:
            return False

        with closing(reader):
            reader.text_factory = lambda data: data.decode("utf-8", errors="replace")
            for rows in _read(reader, select):
                if rows is None:
                    whole = False
                else:
                    insert(target, rows)

    return whole


def _read(reader: sqlite3.Connection, select: str) -> Iterator[list[Any] | None]:
    """The rows that SQLite reads, then None if it failed before the end."""
    try:
        # Without it, SQLite does not open a file that is too short.
        reader.execute("PRAGMA writable_schema=ON")
        cursor = reader.execute(select)
        while rows := cursor.fetchmany(_AT_ONCE):
            yield rows
    except sqlite3.Error:
        yield None


def _copy_pages(damaged: Path, target: sqlite3.Connection) -> None:
    """Copies the rows of single pages."""
    some: list[pages.Row] = []
    for row in pages.rows(damaged):
        some.append(row)
        if len(some) == _AT_ONCE:
            _insert_torn(target, some)
            some = []

    _insert_torn(target, some)


def _insert_torn(target: sqlite3.Connection, rows: Iterable[pages.Row]) -> None:
    # A page does not say which table it belongs to: the types of the values tell entries and seals.
    of_entries = ([str, bytes, str], [str, str, str])
    entries = [row for row in rows if list(map(type, row)) in of_entries]
    for row in entries:
        if _insert_entries(target, [row]):
            target.execute("INSERT OR IGNORE INTO torn VALUES (?)", (row[0],))

    _insert_seals(target, [row for row in rows if len(row) == 3 and isinstance(row[1], int)])


def _insert_entries(target: sqlite3.Connection, rows: Iterable[Any]) -> int:
    """Inserts the rows that have the form of an entry; returns how many are new."""
    sound = [
        (key, value.encode(errors="replace") if isinstance(value, str) else value, origin)
        for key, value, origin in rows
        if isinstance(key, str)
        and key
        and isinstance(value, bytes | str)
        and isinstance(origin, str)
    ]
    return target.executemany(
        "INSERT OR IGNORE INTO entries (key, value, origin) VALUES (?, ?, ?)", sound
    ).rowcount


def _insert_seals(target: sqlite3.Connection, rows: Iterable[Any]) -> None:
    sound = [
        (key, crc, tokens)
        for key, crc, tokens in rows
        if isinstance(key, str)
        and isinstance(crc, int)
        and (tokens is None or isinstance(tokens, int))
    ]
    target.executemany("INSERT OR IGNORE INTO seals (key, crc, tokens) VALUES (?, ?, ?)", sound)


def _drop_unsound(target: sqlite3.Connection) -> None:
    """Drops entries that don't match their checksum, and seals without an entry.

    An entry from a single page may have lost its checksum; then it must at least be JSON.
    """
    unsound = []
    for key, value, origin, crc, tokens, torn in target.execute(
        "SELECT e.key, e.value, e.origin, s.crc, s.tokens, t.key IS NOT NULL FROM entries e"
        " LEFT JOIN seals s ON s.key = e.key LEFT JOIN torn t ON t.key = e.key"
    ):
        if crc is None:
            is_sound = not torn or _is_json(value)
        else:
            is_sound = crc == checksum(key, value, origin, tokens)

        if not is_sound:
            unsound.append((key,))

    target.executemany("DELETE FROM entries WHERE key = ?", unsound)
    target.execute("DELETE FROM seals WHERE key NOT IN (SELECT key FROM entries)")


def _is_json(value: bytes) -> bool:
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:
        return False
