"""Every process that memeval starts ends with it, however memeval ends: the table in
docs/architecture.md.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest
from conftest_pipeline import environment
from ports import free_port

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
PROGRAM = Path(__file__).parents[1] / "systems" / "faulty_program.py"
MARK = "MEMEVALS_OWN_TEST"
"""An environment variable of each process that a test has started, directly or not."""
FEW = ("dataset.limit_cases=1", "dataset.limit_questions=2", "tracking=none")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ENDING_S = 30.0


def slow(*values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.slow)


def left(mark: str) -> list[str]:
    """The command lines of the processes that have the mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append(line)
        except OSError:
            continue

    return [line for line in found if line]


def wait_for(mark: str, words: tuple[str, ...], process: subprocess.Popen[bytes]) -> None:
    """Waits until, for each word, a process with the mark has the word in its command line."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        lines = left(mark)
        if all(any(word in line for line in lines) for word in words):
            return

        assert process.poll() is None, f"it ended with status {process.returncode} before that"
        time.sleep(0.05)

    raise AssertionError(f"{words} did not start: {left(mark)}")


def check_nothing_left(mark: str, patience_s: float = ENDING_S) -> None:
    deadline = time.monotonic() + patience_s
    while lines := left(mark):
        assert time.monotonic() < deadline, lines
        time.sleep(0.05)


def start(home: Path, mark: str, *words: str) -> subprocess.Popen[bytes]:
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "memeval", *words],
        env=environment(home, **{MARK: mark, "TMPDIR": str(temporary)}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )


def by_program(fault: str, home: Path) -> tuple[str, ...]:
    command = shlex.join([sys.executable, "-S", str(PROGRAM), fault, str(home / "mark")])
    return (
        "system=command",
        f"system.command={command}",
        f"system.environment=[{MARK}]",
        *FEW,
    )


def mcp_server(home: Path) -> tuple[str, ...]:
    """A server that never begins a session and has a child process."""
    script = home / "server.sh"
    script.write_text("sleep 613 & sleep 614\n", "utf-8")
    return (
        "system=mcp",
        f"system.command=sh {script}",
        f"system.environment=[{MARK}]",
        "system.store_tool=a",
        "system.search_tool=b",
        *FEW,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("program", signal.SIGKILL),
        *(slow("program", number) for number in SIGNALS[1:]),
        ("server", signal.SIGINT),
        *(slow("server", number) for number in SIGNALS if number != signal.SIGINT),
    ],
)
def test_programs_and_their_children_end_with_a_signal(
    tmp_path: Path, kind: str, number: signal.Signals
) -> None:
    mark = uuid.uuid4().hex
    if kind == "program":
        words, seen = by_program("hangs-with-a-child", tmp_path), ("sleep 611", "faulty_program")
    else:
        words, seen = mcp_server(tmp_path), ("sleep 613", "sleep 614")

    process = start(tmp_path, mark, *words)
    wait_for(mark, seen, process)
    process.send_signal(number)
    process.wait(60)
    check_nothing_left(mark)
    assert not list((tmp_path / "tmp").glob("memeval-case-*")), "folders of cases go as well"


@pytest.mark.slow
def test_a_child_that_a_program_leaves_ends_with_a_clean_run(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    process = start(tmp_path, mark, *by_program("leaves-a-child", tmp_path))
    assert process.wait(120) in (0, 1)
    check_nothing_left(mark)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_processes_of_a_sweep_end_with_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    mark = uuid.uuid4().hex
    words = ("-m", "system=bm25,dense,hybrid", "dataset=synthetic", "dataset.n_cases=40")
    process = start(tmp_path, mark, *words, "hydra.launcher.processes=2", "tracking=none")
    deadline = time.monotonic() + 60
    while len(left(mark)) < 3:
        assert time.monotonic() < deadline and process.poll() is None, left(mark)
        time.sleep(0.05)

    process.send_signal(number)
    process.wait(60)
    check_nothing_left(mark)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray")
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("after_s", [0.0, 2.0], ids=["while it starts", "under way"])
def test_own_ray_cluster_ends_with_a_signal(number: signal.Signals, after_s: float) -> None:
    mark = uuid.uuid4().hex
    # A short path: Ray's sockets are below it.
    with tempfile.TemporaryDirectory(prefix="r") as name:
        home = Path(name)
        words = ("-m", "system=bm25,dense", "dataset=synthetic", "dataset.n_cases=100")
        process = start(home, mark, *words, "hydra/launcher=ray", "tracking=none")
        wait_for(mark, ("raylet/raylet", "agent.py"), process)
        time.sleep(after_s)
        process.send_signal(number)
        process.wait(60)
        check_nothing_left(mark)
        assert not list((home / "tmp").glob("memeval-ray-*"))


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("joblib") is None, reason="needs joblib")
@pytest.mark.parametrize("number", SIGNALS)
def test_joblib_workers_end_with_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    mark = uuid.uuid4().hex
    words = ("-m", "system=bm25,dense", "dataset=synthetic", "dataset.n_cases=100")
    launcher = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "tracking=none")
    process = start(tmp_path, mark, *words, *launcher)
    wait_for(mark, ("loky",), process)
    # A terminal sends Ctrl-C to the whole group; joblib waits for its workers.
    send = os.killpg if number == signal.SIGINT else os.kill
    send(process.pid, number)
    process.wait(60)
    check_nothing_left(mark)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_mlflow_server_ends_with_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    mark = uuid.uuid4().hex
    process = start(tmp_path, mark, "ui", "--no-open", "--port", str(free_port()))
    wait_for(mark, ("mlflow server",), process)
    os.kill(process.pid, number)
    process.wait(60)
    check_nothing_left(mark)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_publishing_process_ends_with_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    mark = uuid.uuid4().hex
    process = start(tmp_path, mark, "system=bm25", "dataset=synthetic", "dataset.n_cases=60")
    wait_for(mark, ("runs.publish.publisher",), process)
    process.send_signal(number)
    process.wait(60)
    # It finishes its current task: a store whose migrations were interrupted would be lost.
    check_nothing_left(mark, 6 * ENDING_S)


POOLS = """
from multiprocessing import get_context
from memeval.runs.compute.forked import _outlive_signals
from memeval.runs.interrupt import listening

with listening():
    IN_A_WORKER
    for _ in range(3):
        with get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1]) == [1]
"""


@pytest.mark.parametrize("worker", ["pass", "_outlive_signals()"], ids=["command", "worker"])
def test_pool_of_processes_that_a_system_forks_ends(worker: str) -> None:
    # A pool sends SIGTERM to its processes, and waits until they have ended.
    code = POOLS.replace("IN_A_WORKER", worker)
    done = subprocess.run(
        [sys.executable, "-c", code], timeout=20, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


TIME_LIMIT = """
import asyncio, os, signal
from memeval.runs.interrupt import listening
from memeval.runs.loop import run_loop

def requeue(number, frame):
    raise RuntimeError("not queued again")

async def work():
    try:
        os.kill(os.getpid(), signal.SIGUSR2)
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("stopped")
        raise

requeue.__module__ = "submitit.core.job_environment"
signal.signal(signal.SIGUSR2, requeue)
try:
    with listening():
        if os.fork() == 0:
            os._exit(int(signal.getsignal(signal.SIGUSR2) is not signal.SIG_DFL))

        assert os.wait()[1] == 0
        run_loop(work())
except RuntimeError as error:
    print(error)
"""


def test_time_limit_of_a_submitit_job_stops_its_run_first() -> None:
    # submitit's handler would raise in the middle of an answer, which would count as failed.
    done = subprocess.run(
        [sys.executable, "-c", TIME_LIMIT], timeout=20, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"stopped\nnot queued again\n")
