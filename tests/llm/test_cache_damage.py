"""Damage to the cache's files: no wrong entry is read, sound entries are kept, and the damage is
reported.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memeval.errors import StorageError
from memeval.llm.cache import Cache, content_key

PAGE = 4096
Damage = Callable[[Path], None]

REPLIES = {
    content_key({"n": number}): json.dumps(
        {"text": f"reply {number} " * (1 + number % 40)}
    ).encode()
    for number in range(240)
}
VECTORS = {
    content_key({"vector": number}): random.Random(number).randbytes(6144) for number in range(60)
}
STORED = REPLIES | VECTORS


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed cache of replies and vectors."""
    path = tmp_path_factory.mktemp("sound") / "c.sqlite"
    cache = Cache(path)
    for key, value in REPLIES.items():
        cache.put_all({key: value}, "run")
    cache.put_all(VECTORS, "run", dict.fromkeys(VECTORS, 7))
    cache.close()
    return path


def fill(start: int, length: int, byte: int | None, seed: int = 0) -> Damage:
    """Overwrites bytes, with one byte or with noise."""

    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        count = max(0, min(length, len(content) - start))
        noise = random.Random(seed).randbytes(count)
        content[start : start + count] = noise if byte is None else bytes([byte]) * count
        path.write_bytes(content)

    return damage


def flip(seed: int) -> Damage:
    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        draw = random.Random(seed)
        for _ in range(20):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)

    return damage


def cut(share: float) -> Damage:
    return lambda path: os.truncate(path, int(path.stat().st_size * share))


def sql(*statements: str) -> Damage:
    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)

    return damage


def instead(make: Damage) -> Damage:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


def beside(suffix: str, make: Damage) -> Damage:
    return lambda path: make(path.with_name(path.name + suffix))


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(0).randbytes(100_000))


def folder(path: Path) -> None:
    path.mkdir()
    (path / "something").write_text("of the user's")


PAGES = {
    f"page {page} {name}": fill((page - 1) * PAGE, PAGE, byte, page)
    for page in (1, 2, 3, 4, 5, 9, 17, 33, 65)
    for name, byte in (("zeroed", 0), ("ones", 255), ("noise", None))
}
HEADERS = {
    f"header bytes {start}": fill(start, length, byte)
    for start, length, byte in (
        (0, 16, 0),
        (0, 100, 0),
        (16, 2, 0),
        (16, 2, 3),
        (18, 2, 9),
        (20, 1, 77),
        (21, 3, 1),
        (28, 4, 255),
        (32, 8, 255),
        (40, 8, 255),
        (44, 4, 9),
        (56, 4, 3),
        (100, 8, 0),
        (103, 2, 255),
        (108, 40, 255),
    )
}
CUTS = {f"cut to {share:.1%}": cut(share) for share in (0.0, 0.0003, 0.01, 0.3, 0.5, 0.9, 0.999)}
FLIPS = {f"20 bits flipped, seed {seed}": flip(seed) for seed in range(12)}
SCHEMAS = {
    "no entries": sql("DROP TABLE entries"),
    "no seals": sql("DROP TABLE seals"),
    "other columns": sql("DROP TABLE entries", "CREATE TABLE entries (id INTEGER, body TEXT)"),
    "fewer columns": sql("DROP TABLE entries", "CREATE TABLE entries (key TEXT PRIMARY KEY)"),
    "a column that needs a value": sql(
        "ALTER TABLE entries RENAME TO old",
        "CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB, origin TEXT, more TEXT NOT NULL)",
        "INSERT INTO entries SELECT key, value, origin, 'x' FROM old",
    ),
    "no key": sql("ALTER TABLE entries RENAME TO old", "CREATE TABLE entries AS SELECT * FROM old"),
    "a view": sql("ALTER TABLE entries RENAME TO old", "CREATE VIEW entries AS SELECT * FROM old"),
    "other seals": sql("DROP TABLE seals", "CREATE TABLE seals (key TEXT PRIMARY KEY)"),
    "another program's": instead(sql("CREATE TABLE alembic_version (version TEXT)")),
    "a version to come": sql("PRAGMA user_version=99", "ALTER TABLE entries ADD COLUMN more TEXT"),
    "values of all kinds": sql(
        "UPDATE entries SET value = 7 WHERE key < '4'",
        "UPDATE entries SET value = 'text' WHERE key BETWEEN '4' AND '8'",
    ),
    "origins of all kinds": sql("UPDATE entries SET origin = x'ff00'"),
    "another checksum": sql("UPDATE seals SET crc = crc + 1 WHERE key < '8'"),
    "no checksum": sql("UPDATE seals SET crc = 'x' WHERE key < '8'"),
    "other tokens": sql("UPDATE seals SET tokens = -99"),
    "swapped": sql(
        "CREATE TEMP TABLE old AS SELECT * FROM entries",
        "UPDATE entries SET value = "
        "(SELECT value FROM old WHERE old.key > entries.key ORDER BY old.key LIMIT 1) "
        "WHERE key < (SELECT max(key) FROM old)",
    ),
}
PLACES = {
    "empty file": instead(lambda path: path.touch()),
    "text": instead(lambda path: path.write_text("no database at all\n" * 500) and None),
    "noise": instead(garbage),
    "a folder": instead(folder),
    "nothing": lambda path: path.unlink(),
    "a link to nothing": instead(lambda path: path.symlink_to(path.with_name("nowhere"))),
    "a link to a folder": instead(lambda path: path.symlink_to(path.parent)),
    "log of noise": beside("-wal", garbage),
    "log is a folder": beside("-wal", folder),
    "index is a folder": beside("-shm", folder),
    "index of noise": beside("-shm", garbage),
    "journal of noise": beside("-journal", garbage),
    "journal is a folder": beside("-journal", folder),
    "a repair of noise": beside(".repair", folder),
    "a repair of nothing": beside(".repair", lambda path: path.mkdir()),
}
MATRIX = {**PAGES, **HEADERS, **CUTS, **FLIPS, **SCHEMAS, **PLACES}


def state(path: Path) -> tuple[int, int]:
    """Number of entries that the cache finds, and how many of them are wrong."""
    cache = Cache(path)
    found = cache.get_all(STORED)
    cache.close()
    return len(found), sum(found[key].value != STORED[key] for key in found)


def test_the_matrix_is_large() -> None:
    assert len(MATRIX) >= 60


@pytest.mark.sampled(kept=12)
@pytest.mark.parametrize("name", MATRIX)
def test_damaged_cache_returns_no_wrong_entry_and_reports_losses(
    sound: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "c.sqlite"
    shutil.copy(sound, path)
    MATRIX[name](path)
    messages: list[str] = []

    cache = Cache(path, messages.append)
    found = cache.get_all(STORED)
    for key, value in STORED.items():
        if key not in found:
            cache.put_all({key: value}, "again")
    cache.put_all({"new": b"{}"}, "run")
    assert cache.get_all(["new"])
    cache.close()

    assert all(found[key].value == STORED[key] for key in found), "what is read is what was stored"
    assert all(
        entry.tokens in (None, 7 if key in VECTORS else None) for key, entry in found.items()
    )
    assert len(found) == len(STORED) or messages or name in ("nothing", "a link to nothing"), (
        "no loss is silent"
    )
    assert all("\n" not in line for line in messages)
    if any("was damaged" in line for line in messages):
        (kept,) = tmp_path.glob("c.sqlite.damaged-*")
        assert kept.name in messages[1]

    said_later: list[str] = []
    cache = Cache(path, said_later.append)
    assert {key: entry.value for key, entry in cache.get_all(STORED).items()} == STORED
    cache.close()
    assert said_later == []


def test_an_entry_without_a_checksum_is_not_used(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    shutil.copy(sound, path)
    sql("DELETE FROM seals WHERE key < '8'")(path)
    messages: list[str] = []
    cache = Cache(path, messages.append)
    assert cache.get_all(STORED).keys() == {key for key in STORED if key >= "8"}
    cache.close()
    assert len(messages) == 2


def test_replies_survive_the_loss_of_all_checksums_but_vectors_do_not(
    sound: Path, tmp_path: Path
) -> None:
    path = tmp_path / "c.sqlite"
    shutil.copy(sound, path)
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'seals'"
        ).fetchone()

    fill((page - 1) * PAGE, PAGE, 0)(path)
    with closing(Cache(path, [].append)) as cache:
        cache.get_all(STORED)

    with closing(Cache(path, [].append)) as cache:
        assert cache.get_all(STORED).keys() == REPLIES.keys()


KILLED_WRITER = """
import os, sys
from pathlib import Path
from memeval.llm.cache import Cache
cache = Cache(Path(sys.argv[1]))
for number in range(50):
    cache.put_all({f"{number:064d}": b'{"in": "the log"}'}, "run")
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    "name", ["header bytes 0", "page 1 noise", "page 2 zeroed", "page 9 noise"]
)
def test_entries_in_the_log_of_a_killed_process_are_kept(
    sound: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "c.sqlite"
    shutil.copy(sound, path)
    subprocess.run([sys.executable, "-c", KILLED_WRITER, str(path)], check=False)
    assert path.with_name("c.sqlite-wal").stat().st_size > 0
    MATRIX[name](path)
    cache = Cache(path, [].append)
    assert len(cache.get_all(f"{number:064d}" for number in range(50))) == 50
    assert len(cache.get_all(STORED)) > len(STORED) * 0.8
    cache.close()


def test_damaged_page_loses_only_its_entries(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    # Pages 2 and 3 are the roots of the two tables: everything below them is lost with them.
    for page in range(4, sound.stat().st_size // PAGE, 7):
        shutil.copy(sound, path)
        fill((page - 1) * PAGE, PAGE, None, page)(path)
        messages: list[str] = []
        cache = Cache(path, messages.append)
        assert len(cache.get_all(STORED)) >= len(STORED) - 40
        cache.close()


@pytest.mark.parametrize("step", ["moved", "half written", "in place"])
def test_repair_is_repeated_after_a_kill(sound: Path, tmp_path: Path, step: str) -> None:
    path, pending = tmp_path / "c.sqlite", tmp_path / "c.sqlite.repair"
    shutil.copy(sound, path)
    fill(0, 100, 0)(path)
    pending.mkdir()
    path.rename(pending / path.name)
    if step == "half written":
        (pending / "work").mkdir()
        garbage(pending / "work" / "fresh")
        garbage(pending / "work" / path.name)
    if step == "in place":
        shutil.copy(sound, path)

    messages: list[str] = []
    cache = Cache(path, messages.append)
    assert len(cache.get_all(STORED)) == len(STORED)
    cache.close()
    assert not pending.exists()
    (damaged,) = tmp_path.glob("c.sqlite.damaged-*")
    assert [file.name for file in damaged.iterdir()] == ["c.sqlite"]
    assert len(messages) == (step != "in place")


READER = """
import sys, time
from pathlib import Path
from memeval.llm.cache import Cache
path, start = Path(sys.argv[1]), Path(sys.argv[2])
keys = sys.stdin.read().split()
while not start.exists():
    time.sleep(0.001)
said = []
cache = Cache(path, said.append)
found = cache.get_all(keys)
for number in range(20):
    cache.put_all({sys.argv[3] + format(number, "063d"): b"{}"}, "run")
cache.close()
print(len(found), sum("was damaged" in line for line in said))
"""


def test_damage_found_by_several_processes_is_repaired_by_one(sound: Path, tmp_path: Path) -> None:
    path, start = tmp_path / "c.sqlite", tmp_path / "start"
    shutil.copy(sound, path)
    fill((9 - 1) * PAGE, PAGE, None)(path)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", READER, str(path), str(start), str(worker)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for worker in range(4)
    ]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n".join(STORED))
        worker.stdin.close()
    start.touch()
    outputs = []
    for worker in workers:
        assert worker.stdout is not None
        with worker.stdout:
            outputs.append(worker.stdout.read().split())
    assert [worker.wait() for worker in workers] == [0] * 4

    assert sum(int(repairs) for _, repairs in outputs) == 1
    assert len({found for found, _ in outputs}) == 1
    cache = Cache(path, [].append)
    assert (
        len(cache.get_all(f"{worker}{number:063d}" for worker in range(4) for number in range(20)))
        == 80
    )
    cache.close()


def test_damage_of_an_open_cache_is_repaired(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    shutil.copy(sound, path)
    messages: list[str] = []
    cache, other = Cache(path, messages.append), Cache(path, messages.append)
    with path.open("r+b") as file:
        file.write(random.Random(1).randbytes(path.stat().st_size))

    for one in (cache, other):
        one.get_all(STORED)
    cache.put_all({"one": b"{}"}, "run")
    other.put_all({"other": b"{}"}, "run")
    assert all(len(one.get_all(["one", "other"])) == 2 for one in (cache, other))
    cache.close()
    other.close()
    assert messages


def test_deleted_folder_of_an_open_cache_is_created_again(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "home" / "c.sqlite"
    path.parent.mkdir()
    shutil.copy(sound, path)
    cache = Cache(path)
    assert len(cache.get_all(STORED)) == len(STORED)
    shutil.rmtree(path.parent)
    cache.put_all({"new": b"{}"}, "run")
    cache.close()
    cache = Cache(path)
    assert cache.get_all(["new"])
    cache.close()


def test_file_that_another_process_put_in_place_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with closing(Cache(path)) as cache:
        for file in (path, *tmp_path.glob("c.sqlite-*")):
            file.rename(tmp_path / f"aside-{file.name}")

        with closing(Cache(path)) as other:
            other.put_all({"new": b"{}"}, "run")

        assert list(cache.get_all(["new"])) == ["new"]


def test_full_disk_raises_an_error_and_keeps_stored_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def small(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **settings)
        connection.execute("PRAGMA max_page_count=20")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    cache = Cache(tmp_path / "c.sqlite")
    with pytest.raises(
        StorageError, match=r"c\.sqlite can't be written: no space left on the disk"
    ):
        for number in range(1000):
            cache.put_all({str(number): b"x" * 3000}, "run")
    assert cache.get_all(["0"]), "what is stored stays"
    cache.close()


def test_repair_on_a_full_disk_is_repeated_later_and_loses_nothing(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.sqlite"
    shutil.copy(sound, path)
    fill((9 - 1) * PAGE, PAGE, None)(path)
    connect = sqlite3.connect

    def small(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **settings)
        connection.execute("PRAGMA max_page_count=20")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    cache = Cache(path, [].append)
    with pytest.raises(StorageError, match="no space left on the disk"):
        cache.get_all(STORED)

    monkeypatch.undo()
    with closing(Cache(path, [].append)) as cache:
        assert len(cache.get_all(STORED)) >= len(STORED) - 40


def test_column_of_a_later_version_that_needs_a_value_is_an_error(
    sound: Path, tmp_path: Path
) -> None:
    path = tmp_path / "c.sqlite"
    with closing(sqlite3.connect(path)) as later, closing(sqlite3.connect(sound)) as ours:
        for (table,) in ours.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL").fetchall():
            later.execute(table.replace(") WITHOUT", ", more TEXT NOT NULL) WITHOUT"))

    with closing(Cache(path)) as cache, pytest.raises(StorageError, match=r"entries\.more"):
        cache.put_all({"0": b"{}"}, "run")
