"""A killed run is continued by the same command: no finished call is repeated, and the records
equal those of an uninterrupted run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from conftest_pipeline import QUESTIONS, SMALL, Command, environment, records, without_times
from doubles.endpoint import ScriptedEndpoint
from forking import run_command_line
from ports import free_port

CONCURRENCY = 4
CELL = (
    *SMALL,
    "llm=openai",
    "llm.model=gpt-4o-mini",
    "judge=llm",
    f"llm.max_concurrency={CONCURRENCY}",
)


def arguments(endpoint: ScriptedEndpoint) -> tuple[str, ...]:
    return (*CELL, f"llm.base_url={endpoint.base_url}")


@pytest.fixture(scope="module")
def port() -> int:
    """The same port, and so the same URL, for all runs: the URL is part of a run's identity."""
    return free_port()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory, port: int) -> list[str]:
    home = tmp_path_factory.mktemp("whole")
    with ScriptedEndpoint(port=port) as endpoint:
        done = run_command_line(arguments(endpoint), env=environment(home))
        assert done.returncode == 0, done.stderr
    return without_times(records(home))


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("after", [7, 1, QUESTIONS // 2, QUESTIONS + 3])
def test_run_continues_after_sigkill(
    memeval: Command, tmp_path: Path, port: int, uninterrupted: list[str], after: int
) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.05) as endpoint:
        process = subprocess.Popen(
            [sys.executable, "-m", "memeval", *arguments(endpoint)],
            env=environment(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        wait_until(endpoint, after, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        memeval(*arguments(endpoint))
        asked = Counter(repr(body) for _, body in endpoint.requests)
        repeated = sum(count - 1 for count in asked.values())
        # A reply passes its slot on just before it is stored.
        assert repeated <= 2 * CONCURRENCY, (
            "only calls under way when the process died may be asked twice"
        )
        assert max(asked.values()) <= 2
    assert without_times(records(tmp_path)) == uninterrupted


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_sigterm_or_sighup_keeps_replies_and_says_how_to_continue(
    memeval: Command, tmp_path: Path, port: int, uninterrupted: list[str], number: signal.Signals
) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.5) as endpoint:
        process = subprocess.Popen(
            [sys.executable, "-m", "memeval", *arguments(endpoint)],
            env=environment(tmp_path, MEMEVAL_PLOTS="true"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        wait_until(endpoint, 6, process)
        process.send_signal(number)
        if number is not signal.SIGINT:
            # As `timeout`, batch systems and shells do: the main process gets the signal twice, all
            # others once.
            os.killpg(process.pid, number)

        _, output = process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert "in progress; Ctrl-C again to stop now" in output
        assert "kept" in output and "same command" in output
        assert "  0 replies lost\n" in output
        assert "Traceback" not in output
        endpoint.latency_s = 0.0
        memeval(*arguments(endpoint))
        asked = Counter(repr(body) for _, body in endpoint.requests)
        assert max(asked.values()) == 1, "calls under way were finished, and their replies kept"
    assert without_times(records(tmp_path)) == uninterrupted


@pytest.mark.slow
def test_torn_lines_are_dropped_and_made_again_without_a_call(
    memeval: Command, tmp_path: Path, port: int, uninterrupted: list[str]
) -> None:
    with ScriptedEndpoint(port=port) as endpoint:
        memeval(*arguments(endpoint))
        files = sorted((tmp_path / "outputs" / "answers").glob("*.jsonl"))
        assert len(files) == 2, "the answers, and the texts that they refer to"
        for file in files:
            file.write_bytes(file.read_bytes()[:-40])
        (run,) = (tmp_path / "outputs" / "runs").glob("*/run.json")
        run.unlink()
        calls = endpoint.count()
        memeval(*arguments(endpoint))
        assert endpoint.count() == calls, "its reply was in the cache"
    assert without_times(records(tmp_path)) == uninterrupted


def wait_until(
    endpoint: ScriptedEndpoint,
    requests: int,
    process: subprocess.Popen[str] | subprocess.Popen[bytes],
) -> None:
    """Waits until the given number of requests have arrived or the process has ended."""
    deadline = time.monotonic() + 60
    while endpoint.count() < requests and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
