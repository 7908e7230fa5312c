"""Copies the sound entries of a damaged cache into a new file.

The damaged file is moved first, so that other processes notice, and it is kept. Until the copy is
complete, the name of its folder ends in `.repair`: a repair that was killed is then repeated. The
new file gets its name in one step. The caller holds the cache's lock.
"""

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from memeval.llm.cache_contract import CachedEntry
from memeval.llm.cache_file import add_entry, companions, connect_to_read, make_tables, sound_entry
from memeval.text.typed import json_or_none

_MAX_DIGITS = 3
"""Digits of the shortest ranges of keys that are read separately, to skip a damaged page."""
_PAGE = 4096


def put_aside(path: Path) -> None:
    """Moves the file at `path` and its companion files into the repair folder."""
    folder = _folder(path)
    folder.mkdir(exist_ok=True)
    for file in (path, *companions(path)):
        with suppress(FileNotFoundError):
            file.rename(folder / file.name)


def finish(path: Path) -> str | None:
    """Copies the moved file into a new one; returns a message, None if nothing was copied."""
    folder = _folder(path)
    if not folder.is_dir():
        return None

    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    kept = None
    # A repair that was killed after its last step has nothing left to copy.
    if not path.exists():
        # A repair that was killed may have left a log next to the file.
        put_aside(path)
        work.mkdir()
        kept = _copy(folder / path.name, work)
        (work / "fresh").replace(path)
        shutil.rmtree(work)

    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9:09}"
    damaged = folder.rename(path.with_name(f"{path.name}.damaged-{stamp}"))
    if kept is None:
        return None

    return (
        f"the cache {path} was damaged: entries kept: {kept}; lost entries are requested again. "
        f"The damaged file is kept in {damaged.name}"
    )


def _folder(path: Path) -> Path:
    return path.with_name(f"{path.name}.repair")


def _copy(damaged: Path, work: Path) -> int:
    """Creates the file `fresh` in `work` from the sound entries; returns their number."""
    fresh = work / "fresh"
    with closing(sqlite3.connect(fresh)) as target, target:
        target.execute("PRAGMA synchronous=OFF")
        make_tables(target)
        kept = _copy_entries(damaged, target)
        if kept or not damaged.is_file() or damaged.stat().st_size <= _PAGE:
            return kept

        # Nothing could be read with the file's own first page. The first page of an empty cache may
        # work instead: it also contains the positions of the tables.
        for file in filter(Path.is_file, (damaged, *companions(damaged))):
            shutil.copyfile(file, work / file.name)

        with (work / damaged.name).open("r+b") as repaired:
            # Bytes 92 to 95 name the change for which the page count is valid. If they name another
            # change, SQLite uses the file's size.
            first = fresh.read_bytes()[:_PAGE]
            repaired.write(first[:92] + b"\xff" * 4 + first[96:])

        return _copy_entries(work / damaged.name, target)


def _copy_entries(damaged: Path, target: sqlite3.Connection) -> int:
    """Copies the sound entries that SQLite can read; returns their number."""
    kept = 0
    seals = {key: seal for key, *seal in _rows(damaged, "SELECT key, crc, tokens FROM seals")}
    for key, value, origin in _rows(damaged, "SELECT key, value, origin FROM entries"):
        entry = None
        if key in seals:
            entry = sound_entry((key, value, origin, *seals[key]))
        elif isinstance(value, bytes) and isinstance(origin, str):
            # An entry whose checksum could not be read must at least be JSON.
            entry = CachedEntry(value, origin) if isinstance(json_or_none(value), dict) else None

        if entry is not None:
            kept += add_entry(target, key, entry)

    return kept


def _rows(damaged: Path, select: str) -> Iterator[Any]:
    """The rows that SQLite can read, some of them twice; skips a damaged page by ranges of keys."""
    prefixes = [""]
    with suppress(sqlite3.Error), closing(connect_to_read(damaged)) as source:
        while prefixes:
            prefix = prefixes.pop()
            try:
                # Keys are hexadecimal, and `g` sorts after their last digit.
                ends = (prefix, f"{prefix}g")
                yield from source.execute(f"{select} WHERE key > ? AND key < ?", ends)
            except sqlite3.Error:
                if len(prefix) < _MAX_DIGITS:
                    prefixes += [prefix + digit for digit in "0123456789abcdef"]
