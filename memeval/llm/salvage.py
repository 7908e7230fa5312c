"""Copies the sound entries of a damaged cache into a new file, row by row, in SQL.

The damaged file is moved first, so that other processes notice, and it is kept. Until the copy is
complete, the name of its folder ends in `.repair`: a repair that was killed is then repeated. The
new file gets its name in one step. The caller holds the cache's lock.
"""

import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from memeval.llm.cache_file import checksum, companions, decode_text, make_tables

_LONGEST_PREFIX = 3
"""Longest key prefix by which rows are copied separately, to skip a damaged page."""
_PAGE = 4096
_COPY = (
    "INSERT OR IGNORE INTO entries (key, value, origin) "
    "SELECT key, CAST(value AS BLOB), origin FROM damaged.entries WHERE key > ? AND key < ? "
    "AND typeof(value) IN ('blob', 'text') AND typeof(origin) = 'text'",
    "INSERT OR IGNORE INTO seals (key, crc, tokens) "
    "SELECT key, crc, tokens FROM damaged.seals WHERE key > ? AND key < ? "
    "AND typeof(crc) = 'integer' AND typeof(tokens) IN ('integer', 'null')",
)
_DROP_UNSOUND = """
-- An entry whose checksum could not be read must at least be JSON, and gets a new one.
INSERT OR IGNORE INTO seals (key, crc, tokens)
  SELECT key, checksum(CAST(key AS BLOB), value, CAST(origin AS BLOB), NULL), NULL
  FROM entries WHERE key NOT IN (SELECT key FROM seals)
  AND CASE WHEN json_valid(CAST(value AS TEXT)) THEN json_type(CAST(value AS TEXT)) END = 'object';
DELETE FROM entries WHERE key NOT IN (SELECT key FROM entries JOIN seals USING (key)
  WHERE crc = checksum(CAST(key AS BLOB), value, CAST(origin AS BLOB), tokens));
DELETE FROM seals WHERE key NOT IN (SELECT key FROM entries);
"""


def put_aside(path: Path) -> None:
    """Moves the file at `path` and its companion files into the repair folder."""
    folder = _folder(path)
    folder.mkdir(exist_ok=True)
    for file in (path, *companions(path)):
        with suppress(FileNotFoundError):
            file.rename(folder / file.name)


def finish(path: Path) -> str | None:
    """Copies the file put aside into a new one; returns a message, None if nothing was copied."""
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
    with closing(sqlite3.connect(fresh, isolation_level=None, uri=True)) as target:
        target.execute("PRAGMA synchronous=OFF")
        # Without it, SQLite does not open a file that is too short.
        target.execute("PRAGMA writable_schema=ON")
        target.create_function("checksum", 4, _checksum)
        make_tables(target)
        kept = _copy_rows(damaged, target)
        if kept or not damaged.is_file() or damaged.stat().st_size <= _PAGE:
            return kept

        # Nothing could be read with the file's own first page. The first page of an empty cache may
        # work instead: it says where the tables begin, too.
        for file in filter(Path.is_file, (damaged, *companions(damaged))):
            shutil.copyfile(file, work / file.name)

        with (work / damaged.name).open("r+b") as repaired:
            # Bytes 92 to 95 name the change for which the page count is valid. If they name another
            # change, SQLite uses the file's size.
            first = fresh.read_bytes()[:_PAGE]
            repaired.write(first[:92] + b"\xff" * 4 + first[96:])

        return _copy_rows(work / damaged.name, target)


def _copy_rows(damaged: Path, target: sqlite3.Connection) -> int:
    """Copies the sound rows that SQLite can read; returns the number of entries afterwards."""
    if not damaged.is_file():
        return 0

    with suppress(sqlite3.Error):
        target.execute("ATTACH ? AS damaged", (f"{damaged.absolute().as_uri()}?mode=ro",))
        for statement in _COPY:
            _copy_keys(target, statement, "")

        target.execute("DETACH damaged")

    target.executescript(_DROP_UNSOUND)
    (count,) = target.execute("SELECT count(*) FROM entries").fetchone()
    return int(count)


def _copy_keys(target: sqlite3.Connection, statement: str, prefix: str) -> None:
    """Copies rows whose keys begin with `prefix`; skips an unreadable row by longer prefixes."""
    try:
        # Keys are hexadecimal, and `g` sorts after their last digit.
        target.execute(statement, (prefix, f"{prefix}g"))
    except sqlite3.Error:
        if len(prefix) < _LONGEST_PREFIX:
            for digit in "0123456789abcdef":
                _copy_keys(target, statement, prefix + digit)


def _checksum(key: bytes, value: bytes, origin: bytes, tokens: int | None) -> int:
    # As bytes: SQLite can't pass damaged text to a function.
    return checksum(decode_text(key), value, decode_text(origin), tokens)
