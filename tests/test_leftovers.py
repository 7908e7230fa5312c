"""Leftovers of killed runs are removed, but nothing that belongs to a living process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from forking import run_command_line

from memeval.process import started
from memeval.process.leftovers import OLD_S, owner, sweep, sweep_temporary, temporary_name
from memeval.results.files import temporary_folder, write_atomically


@pytest.fixture
def dead() -> str:
    """The owner id of a process that has ended."""
    code = "from memeval.process.leftovers import owner; print(owner())"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def made(path: Path, *, age_s: float = 0.0) -> Path:
    path.mkdir(parents=True)
    (path / "half").write_text("x", encoding="utf-8")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_only_leftovers_of_dead_processes_are_removed(tmp_path: Path, dead: str) -> None:
    memory = tmp_path / "key" / "case"
    number, began, machine = owner().split("-")
    elsewhere = f"{dead.rpartition('-')[0]}-{machine[::-1]}"
    gone = [
        made(memory.with_name(f".case.{dead}.7.tmp")),
        made(memory.with_name(f".case.{number}-{int(began) + 1}.7.tmp")),
        made(memory.with_name(f".case.{number}-{int(began) + 1}-{machine}.7.tmp")),
        made(memory.with_name(f".case.{elsewhere}.6.tmp"), age_s=OLD_S + 60),
        made(memory.with_name(f".case.{dead.split('-', maxsplit=1)[0]}.tmp")),
        made(memory.with_name(".case.nobody.tmp"), age_s=OLD_S + 60),
    ]
    kept = [
        made(memory),
        made(temporary_name(memory, "7")),
        made(memory.with_name(f".case.{elsewhere}.7.tmp")),
        made(memory.with_name(f".case.{os.getpid()}.tmp")),
        made(memory.with_name(".case.nobody-else.tmp")),
        made(memory.with_name(f"case.{dead}.7.tmp")),
    ]
    outside = made(tmp_path / "outside")
    link = memory.with_name(f".link.{dead}.1.tmp")
    link.symlink_to(outside)
    sweep(tmp_path)
    assert not [path for path in gone if path.exists()]
    assert not [path for path in kept if not path.exists()]
    assert not link.is_symlink() and (outside / "half").exists()


def test_owner_of_a_temporary_folder_is_read_from_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dead: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = [
        made(tmp_path / f"memeval-mem0-{dead}-abc"),
        made(tmp_path / "memeval-mem0-a1b2c3d4", age_s=OLD_S + 60),
        made(tmp_path / "memeval-package-a1b2c3d4", age_s=OLD_S + 60),
        made(tmp_path / "memeval-check-a1b2c3d4", age_s=OLD_S + 60),
    ]
    kept = [
        started.make_folder("mem0", guarded=False),
        made(tmp_path / "memeval-mem0-a1b2c3d5"),
        made(tmp_path / "memeval-package-a1b2c3d5"),
        made(tmp_path / "memeval-notes"),
        made(tmp_path / "other"),
    ]
    sweep_temporary()
    assert not [path for path in gone if path.exists()]
    assert not [path for path in kept if not path.exists()]


def test_temporary_folder_names_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dead: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_folder("artifacts") as folder:
        path = Path(folder)
        assert path.name.startswith(f"memeval-artifacts-{owner()}-")
        left = made(tmp_path / path.name.replace(owner(), dead))
        sweep_temporary()
        assert list(tmp_path.iterdir()) == [path]

    assert not left.exists()


def test_run_removes_leftovers_of_killed_runs(tmp_path: Path, dead: str) -> None:
    left = made(tmp_path / "data" / "prepared" / "demo" / "bm25-key" / f".case.{dead}.7.tmp")
    words = ["dataset.limit_cases=1", "dataset.limit_questions=1", "tracking=none"]
    environ = {**os.environ, "MEMEVAL_HOME": str(tmp_path)}
    done = run_command_line(words, env=environ)
    assert done.returncode == 0, done.stderr
    assert not left.exists()


def test_file_that_a_killed_process_left_beside_its_target_is_removed_by_the_first_write(
    tmp_path: Path, dead: str
) -> None:
    left = tmp_path / f".{dead}.abcd1234.tmp"
    other = tmp_path / f".{owner()}.abcd1234.tmp"
    for path in (left, other):
        path.write_text("half", encoding="utf-8")

    write_atomically(tmp_path / "own.json", "{}")
    assert not left.exists() and other.exists()

    # A second look at the folder would cost half a second for 100,000 files, at each write.
    left.write_text("half", encoding="utf-8")
    write_atomically(tmp_path / "own.json", "{}")
    assert left.exists()
