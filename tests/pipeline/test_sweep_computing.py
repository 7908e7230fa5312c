"""Runs that only compute are spread over processes; a process that dies loses only its open
call.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import Pipe
from pathlib import Path
from typing import NoReturn

import pytest
from conftest_pipeline import Command, environment

from memeval.runs.compute.forked import become_forker

HERE = Path(__file__).parent
WORDS = (
    "-m",
    "system=no_memory",
    "dataset=demo",
    "dataset.limit_cases=3",
    "dataset.limit_questions=4",
    "tracking=none",
    "hydra.launcher.processes=2",
)


def raiser(error: BaseException) -> Callable[..., NoReturn]:
    """A function that raises `error`."""

    def fail(*_: object) -> NoReturn:
        raise error

    return fail


def statuses(home: Path) -> list[list[str]]:
    """The statuses of the records of each run."""
    found = []
    for path in (home / "outputs" / "runs").glob("*/records.jsonl"):
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        found.append([row["status"] for row in rows])

    return found


@pytest.mark.slow
def test_a_case_whose_process_is_killed_is_tried_once_more(
    memeval: Command, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    words = (*WORDS, "system.class=killed_worker:KilledOnce", "top_k=1,2")
    done = memeval(*words, PYTHONPATH=str(HERE), KILLED_MARK=str(mark))
    assert mark.exists(), "no process was killed"
    assert statuses(tmp_path) == [["ok"] * 12] * 2
    assert "answer 12/12, judge 12/12" in done.stderr

    for path in (tmp_path / "outputs" / "answers").glob("*[0-9a-f].jsonl"):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
        ids = [row["id"] for row in rows]
        assert len(ids) == len(set(ids)), "what was computed before is not computed again"


def test_run_whose_processes_are_killed_fails_and_others_finish(
    memeval: Command, tmp_path: Path
) -> None:
    classes = "system.class=killed_worker:KilledAlways,killed_worker:KilledOnce"
    mark = tmp_path / "mark"
    mark.touch()
    done = memeval(*WORDS, classes, PYTHONPATH=str(HERE), KILLED_MARK=str(mark), check=False)
    assert done.returncode == 1
    assert "the process computing the case was killed 2 times" in done.stderr
    assert "Traceback" not in done.stderr
    assert statuses(tmp_path) == [["ok"] * 12]


@pytest.mark.slow
def test_runs_fail_if_no_process_can_be_started_any_more(memeval: Command, tmp_path: Path) -> None:
    words = (*WORDS, "system.class=killed_worker:KilledForker", "top_k=1,2")
    done = memeval(*words, PYTHONPATH=str(HERE), check=False)
    assert done.returncode == 1
    assert "the process computing the case was killed 2 times" in done.stderr
    assert statuses(tmp_path) == []


def test_a_process_that_cannot_be_forked_counts_as_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    control, other = socket.socketpair()
    ours, theirs = Pipe()
    with control, theirs:
        socket.send_fds(control, [b"w"], [theirs.fileno()])

    monkeypatch.setattr(os, "fork", raiser(BlockingIOError(errno.EAGAIN, "no more processes")))
    monkeypatch.setattr(os, "_exit", raiser(SystemExit(0)))
    monkeypatch.setattr(os, "waitpid", lambda *_: (0, 0))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with other, pytest.raises(SystemExit):
        become_forker(other, {}, 1)

    with ours, pytest.raises(EOFError):
        ours.recv_bytes()


def test_each_of_eight_processes_gets_a_case(memeval: Command, tmp_path: Path) -> None:
    folder = tmp_path / "processes"
    folder.mkdir()
    data = ("dataset=synthetic", "dataset.tokens=300", "dataset.n_cases=16")
    words = ("-m", "system=no_memory", "system.class=killed_worker:Noted", *data, "tracking=none")
    memeval(*words, "hydra.launcher.processes=8", PYTHONPATH=str(HERE), KILLED_MARK=str(folder))
    assert len(list(folder.iterdir())) == 8


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_sigterm_or_sighup_ends_the_computing_processes(
    memeval: Command, tmp_path: Path, number: signal.Signals
) -> None:
    mark = tmp_path / "mark"
    mark.touch()
    words = (*WORDS, "system.class=killed_worker:Slow", "top_k=1,2,3,4")
    variables = {"PYTHONPATH": str(HERE), "KILLED_MARK": str(mark)}
    process = start_until_asked(tmp_path, words, mark, variables)
    os.killpg(process.pid, number)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "stopped at: " in output and "same command" in output
    assert "Traceback" not in output

    mark.unlink()
    memeval(*words, **variables)
    assert statuses(tmp_path) == [["ok"] * 12] * 4


@pytest.mark.slow
def test_second_ctrl_c_ends_a_sweep_immediately(memeval: Command, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.touch()
    words = (*WORDS, "system.class=killed_worker:Hangs", "top_k=1,2")
    variables = {"PYTHONPATH": str(HERE), "KILLED_MARK": str(mark)}
    process = start_until_asked(tmp_path, words, mark, variables)

    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1)  # its processes may take eight seconds to end their calls

    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=4) == 130
    mark.unlink()
    _, output = process.communicate(timeout=30)  # its processes hold the same stream
    assert "stopped immediately" in output and "same command continues" in output
    assert "Traceback" not in output

    memeval(*words, **variables)
    assert statuses(tmp_path) == [["ok"] * 12] * 2


@pytest.mark.slow
def test_hanging_process_ends_after_its_parent_was_killed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.touch()
    words = (*WORDS, "system.class=killed_worker:Hangs")
    variables = {"PYTHONPATH": str(HERE), "KILLED_MARK": str(mark)}
    process = start_until_asked(tmp_path, words, mark, variables)
    process.kill()
    asked = mark.with_suffix(".asked")
    deadline = time.monotonic() + 30

    # The hanging system touches the file repeatedly.
    while time.time() - asked.stat().st_mtime < 3:
        assert time.monotonic() < deadline, "its process still runs"
        time.sleep(0.1)

    process.communicate(timeout=30)  # afterwards no process has the same stream open


def start_until_asked(
    home: Path, words: Sequence[str], mark: Path, variables: Mapping[str, str]
) -> subprocess.Popen[str]:
    """A running sweep whose system waits until the mark is removed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "memeval", *words],
        env=environment(home, **variables),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    until = time.monotonic() + 120
    while not mark.with_suffix(".asked").exists():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.01)

    return process
