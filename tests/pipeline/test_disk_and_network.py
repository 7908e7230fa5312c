"""A full disk, an unreachable tracking server, no network at all: finished work is kept, and the
same command continues.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from conftest_pipeline import QUESTIONS, SMALL, Command, environment, records, without_times
from doubles.endpoint import ScriptedEndpoint

from memeval import __file__ as package_file
from memeval.api.running import compose_cell
from memeval.errors import StorageError, WorldError
from memeval.pipeline.execute.run import CellRun
from memeval.runs.cell import run_alone
from memeval.runs.invocation import FailedCell, Invocation

FILE_LIMIT = 8_000
"""Size in bytes that a file may reach in the run on the full disk."""


def test_full_disk_stops_with_one_line_and_keeps_finished_answers(
    memeval: Command, tmp_path: Path
) -> None:
    limited = (
        "import resource, runpy, sys; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({FILE_LIMIT}, {FILE_LIMIT})); "
        "sys.argv = ['memeval', *sys.argv[1:]]; runpy.run_module('memeval', run_name='__main__')"
    )
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-c", limited, *SMALL, "num_runs=2"],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "can't be written" in done.stderr
    assert "same command" in done.stderr
    assert "Traceback" not in done.stderr
    kept = (home / "outputs" / "answers").glob("*.jsonl")
    finished = sum(
        b'"hypothesis"' in line for path in kept for line in path.read_bytes().splitlines()
    )
    assert 0 < finished < 2 * QUESTIONS
    memeval(*SMALL, "num_runs=2", home=home)
    memeval(*SMALL, "num_runs=2", home=tmp_path / "other")
    assert without_times(records(home)) == without_times(records(tmp_path / "other"))


class FullList(Invocation, frozen=True):
    """An invocation whose list of failures can't be written."""

    def note_failed(self, cell: FailedCell) -> None:
        raise StorageError(f"no space left for {cell.message}")


async def fail(*_: object) -> None:
    raise WorldError("the endpoint is gone")


def test_a_failure_that_fits_on_no_list_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    monkeypatch.setattr(CellRun, "run", fail)
    with pytest.raises(StorageError, match="no space left for the endpoint is gone"):
        run_alone(compose_cell(SMALL), FullList(tmp_path), quiet=True)


@pytest.mark.slow
def test_unreachable_tracking_server_loses_no_record_and_is_logged_later(
    memeval: Command, tmp_path: Path, empty_database: Path
) -> None:
    shutil.copy(empty_database, tmp_path / "later.db")
    cell = [word for word in SMALL if not word.startswith("tracking")]
    away = memeval(*cell, MLFLOW_TRACKING_URI="http://127.0.0.1:9")
    assert "not published" in away.stderr
    assert "the same command publishes it later" in away.stderr
    before = records(tmp_path)
    assert len(before) == QUESTIONS
    later = memeval(*cell, MLFLOW_TRACKING_URI=f"sqlite:///{tmp_path}/later.db")
    assert "not published" not in later.stderr
    assert records(tmp_path) == before
    with closing(sqlite3.connect(tmp_path / "later.db")) as store:
        (logged,) = store.execute("SELECT COUNT(*) FROM runs").fetchone()
    assert logged


@pytest.mark.slow
def test_offline_run_contacts_no_outside_host(
    tmp_path: Path, give_store: Callable[[Path], None]
) -> None:
    """Uses separate processes: a forked process has read its `sitecustomize` already."""
    give_store(tmp_path)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    seen = tmp_path / "names.jsonl"
    (hooks / "sitecustomize.py").write_text(
        "import json, sys\n"
        "def note(event, arguments):\n"
        "    if event in ('socket.getaddrinfo', 'socket.gethostbyname', 'socket.connect'):\n"
        f"        with open({str(seen)!r}, 'a') as file:\n"
        "            file.write(json.dumps([event, repr(arguments)]) + '\\n')\n"
        "sys.addaudithook(note)\n"
    )
    package = str(Path(package_file).parents[1])
    hooked = environment(tmp_path, PYTHONPATH=os.pathsep.join([str(hooks), package]))
    cell = [word for word in SMALL if not word.startswith("tracking")]
    subprocess.run(
        [sys.executable, "-m", "memeval", "-m", *cell, "system=mem0,rag"], env=hooked, check=True
    )
    calls = [json.loads(line) for line in seen.read_text().splitlines()] if seen.exists() else []
    outside = [
        call
        for call in calls
        if not any(own in call[1] for own in ("127.0.0.1", "'localhost'", "'::1'"))
    ]
    assert outside == []
    probe = subprocess.run(
        [
            sys.executable,
            "-c",
            "import socket\ntry: socket.getaddrinfo('example.invalid', 80)\nexcept OSError: pass",
        ],
        env=hooked,
        check=False,
    )
    assert probe.returncode == 0
    assert "example.invalid" in seen.read_text(), "the hook would have seen a look-up"


def test_no_call_is_sent_if_the_disk_is_nearly_full(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        words = ("-m", "system=bm25,no_memory", *SMALL, "llm=openai", "judge=llm")
        words = (*words, f"llm.base_url={endpoint.base_url}")
        done = memeval(*words, check=False, constants={"memeval.llm.disk.RESERVE": 2.0**60})
        assert endpoint.count() == 0

        assert done.returncode == 1
        assert f"MiB are free in {tmp_path}" in done.stderr
        assert done.stderr.count("no call was sent: ") == 1, "once for both cells"

        memeval(*words)
        assert endpoint.count() > 0
