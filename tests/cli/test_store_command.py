"""`store info | clean | verify` on the command line."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from pathlib import Path

import pytest
from command_line import SMALL, completed, memeval
from filelock import FileLock

CELL = ("dataset=demo", "system=rag", *SMALL)
DAY_S = 24 * 3600.0


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("store") / "home"
    completed(home, *CELL)
    completed(home, *CELL, "system=bm25")
    return home


@pytest.fixture
def home(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "home")


def listing(home: Path) -> dict[str, bytes]:
    """Content of the files in a home, without locks."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def make_old(home: Path, days: float) -> None:
    then = time.time() - days * DAY_S
    for path in home.rglob("*"):
        os.utime(path, (then, then))


def forget_run(home: Path, system: str) -> None:
    """Removes the folder of one run, so that no run needs its rows."""
    for folder in (home / "outputs" / "runs").iterdir():
        if f"name: {system}" in (folder / "config.yaml").read_text():
            shutil.rmtree(folder)


def test_info_counts_by_kind(finished: Path) -> None:
    out = completed(finished, "store", "info").out
    counts = {line.split()[0]: line.split()[1] for line in out.splitlines()[1:-2]}
    assert counts == {"answers": "2", "texts": "2", "verdicts": "2", "runs": "2", "memories": "2"}
    assert "unknown" not in out


def test_an_empty_home_has_nothing(tmp_path: Path) -> None:
    assert "in all" in completed(tmp_path, "store", "info").out
    assert "nothing to remove" in completed(tmp_path, "store", "clean", "--yes").out
    assert "checked: nothing; problems: 0" in completed(tmp_path, "store", "verify").out


def test_clean_keeps_what_runs_need_however_old(home: Path) -> None:
    make_old(home, 100)
    before = listing(home)
    assert "nothing to remove" in completed(home, "store", "clean", "--yes").out
    assert listing(home) == before


def test_clean_removes_old_items_that_no_run_needs(home: Path) -> None:
    forget_run(home, "bm25")
    output = completed(home, "store", "clean").out
    assert output == (
        "nothing to remove\n"
        "4 items that no run needs are newer than 7 days: --days 0 also removes them\n"
    )
    assert completed(home, "store", "clean", "--days", "0").out.count("(no run needs it)") == 4

    make_old(home, 8)
    before = listing(home)
    planned = completed(home, "store", "clean").out
    assert planned.count("(no run needs it)") == 4 and "add --yes" in planned
    assert listing(home) == before

    done = completed(home, "store", "clean", "--yes").out
    assert done.count("\n") == planned.count("\n")
    gone = sorted({name.split("/")[1] for name in before.keys() - listing(home).keys()})
    assert gone == ["answers", "prepared", "verdicts"]
    assert not any("bm25" in name for name in listing(home))
    assert ": sound" in completed(home, "verify").out


def test_clean_removes_nothing_keyed_if_a_run_is_unreadable(home: Path) -> None:
    forget_run(home, "bm25")
    make_old(home, 8)
    (rag,) = (home / "outputs" / "runs").iterdir()
    (rag / "run.json").write_text("{}")
    done = completed(home, "store", "clean", "--yes")
    assert rag.name in done.err and "nothing to remove" in done.out


def test_clean_removes_old_memories_on_request(home: Path) -> None:
    make_old(home, 3)
    before = listing(home)
    assert "nothing" in completed(home, "store", "clean", "--memories-older-than=4", "--yes").out
    done = completed(home, "store", "clean", "--memories-older-than=2", "--yes").out
    assert done.count("removed  memories") == 2
    assert {name.split("/")[1] for name in before.keys() - listing(home).keys()} == {"prepared"}
    assert "1 built" in completed(home, "prepare", *CELL).out


def test_clean_removes_leftovers_only_of_dead_processes(home: Path) -> None:
    answers = home / "outputs" / "answers"
    (answers / ".x.json.4194303.abc.tmp").write_text("torn")
    (answers / f".x.json.{os.getpid()}.abc.tmp").write_text("being written")
    memories = next((home / "data" / "prepared").glob("*/*"))
    (memories / ".m.4194303-5.1.tmp").mkdir()
    for folder in ("outputs/sweeps/one", "outputs/gate/one", "data/cache/verified"):
        (home / folder).mkdir(parents=True)
        (home / folder / ".x.json.4194303.abc.tmp").write_text("torn")

    done = completed(home, "store", "clean", "--yes").out
    assert done.count("(left by a killed process)") == 5
    assert [path.name for path in answers.glob(".*")] == [f".x.json.{os.getpid()}.abc.tmp"]


def test_clean_keeps_locked_items(home: Path) -> None:
    forget_run(home, "bm25")
    make_old(home, 8)
    before = listing(home)
    locks = [FileLock(path) for path in (home / "outputs").glob("*/*.jsonl.lock")]
    for lock in locks:
        lock.acquire()

    done = completed(home, "store", "clean", "--memories-older-than=1", "--yes")
    for lock in locks:
        lock.release()

    assert "memories are kept" in done.err and done.out.count("in use") == 3
    assert listing(home) == before


def test_lock_that_cannot_be_opened_is_reported_in_one_line(tmp_path: Path) -> None:
    lock = tmp_path / "outputs" / "answers" / "0123456789abcdef.jsonl.lock"
    lock.mkdir(parents=True)
    done = memeval(tmp_path, "store", "clean")
    assert done.status == 1
    assert done.err.startswith(f"memeval: {lock} can't be opened: Is a directory\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["clean", "--days=-1"], "store clean"),
        (["clean", "--days=nan"], "store clean"),
        (["clean", "--days=x"], "store clean"),
        (["burn"], "unknown action of store 'burn'. Available: clean, "),
        ([], "store"),
    ],
)
def test_invalid_arguments_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    done = memeval(tmp_path, "store", *words)
    assert done.status == 2 and done.message.startswith(f"memeval: {message}")


def test_verify_names_damaged_items(home: Path) -> None:
    assert "problems: 0" in completed(home, "store", "verify").out

    answers = next(
        path for path in (home / "outputs" / "answers").glob("*.jsonl") if "texts" not in path.name
    )
    answers.write_text(answers.read_text().replace('"status":"ok"', '"status":"OK"', 1))
    texts = answers.with_suffix(".texts.jsonl")
    texts.write_text(texts.read_text().replace('"text":"', '"text":"X', 1))
    manifest = next((home / "data" / "prepared").glob("*/*/*/memory.json"))
    manifest.write_text("{}")
    cache = home / "data" / "cache" / "responses.sqlite"
    write_cache(cache)

    done = memeval(home, "store", "verify")
    assert done.status == 1
    assert "1 line torn" in done.out and "texts are damaged" in done.out
    assert "memory.json" in done.out and "does not match: 1 entry" in done.out


def write_cache(path: Path) -> None:
    """A cache with a sound entry and a damaged one."""
    from memeval.llm.cache import Cache

    cache = Cache(path)
    cache.put_all({"a": b"1", "b": b"2"}, "run", {"a": 3})
    cache.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET value = ? WHERE key = 'b'", (b"3",))
    connection.close()
