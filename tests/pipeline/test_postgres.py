"""Runs on a real PostgreSQL server: the same records as with files, shared between homes, and
nothing is lost if the server or a process is killed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import Command, environment, records, without_times
from conftest_pipeline import start as start_command
from doubles.endpoint import ScriptedEndpoint
from forking import run_command_line
from ports import free_port
from postgres_server import PROGRAMS, Server

from memeval.errors import StorageError, UserError
from memeval.store.postgres.database import open_database

pytestmark = pytest.mark.skipif(
    not PROGRAMS or importlib.util.find_spec("psycopg") is None,
    reason="needs PostgreSQL's server (apt-get install postgresql) and psycopg",
)
LIMIT = 4
CELL = (
    "dataset=demo",
    "dataset.limit_cases=3",
    "dataset.limit_questions=8",
    "tracking=none",
    "llm=openai",
    "llm.model=gpt-4o-mini",
    "judge=llm",
    f"llm.max_concurrency={LIMIT}",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def empty(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGUSER", "memeval")
    server.ask("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


@pytest.fixture(scope="module")
def port() -> int:
    """The same port, and so the same URL, for all runs: the URL is part of a run's identity."""
    return free_port()


def words(server: Server, endpoint: ScriptedEndpoint) -> tuple[str, ...]:
    return (*CELL, f"store.url={server.url}", f"llm.base_url={endpoint.base_url}")


@pytest.fixture(scope="module")
def on_files(tmp_path_factory: pytest.TempPathFactory, port: int) -> list[str]:
    home = tmp_path_factory.mktemp("files")
    with ScriptedEndpoint(port=port) as endpoint:
        words = (*CELL, f"llm.base_url={endpoint.base_url}")
        done = run_command_line(words, env=environment(home))
        assert done.returncode == 0, done.stdout + done.stderr

    return without_times(records(home))


def start(
    server: Server, endpoint: ScriptedEndpoint, home: Path, *more: str
) -> subprocess.Popen[str]:
    return start_command(home, *words(server, endpoint), *more)


def wait_for(endpoint: ScriptedEndpoint, calls: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while endpoint.count() < calls and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)

    assert process.poll() is None and endpoint.count() >= calls


def repeated(endpoint: ScriptedEndpoint) -> int:
    asked = Counter(repr(body) for _, body in endpoint.requests)
    return sum(count - 1 for count in asked.values())


@pytest.mark.slow
def test_second_home_reuses_the_results_of_the_first(
    memeval: Command, tmp_path: Path, server: Server, port: int, on_files: list[str]
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with ScriptedEndpoint(port=port) as endpoint:
        memeval(*words(server, endpoint), home=one)
        calls = endpoint.count()
        memeval(*words(server, endpoint), home=other)
        assert calls and endpoint.count() == calls

    assert without_times(records(one)) == without_times(records(other)) == on_files
    assert not (one / "data" / "cache").exists()
    for file in (one / "outputs").glob("*/*.jsonl"):
        own = sorted(file.read_bytes().splitlines())
        assert own == sorted(
            (other / "outputs" / file.parent.name / file.name).read_bytes().splitlines()
        )

    assert ": sound" in memeval("verify", home=other).stdout


@pytest.mark.slow
def test_rows_of_files_are_copied_into_the_database(
    memeval: Command, tmp_path: Path, server: Server, port: int, on_files: list[str]
) -> None:
    with ScriptedEndpoint(port=port) as endpoint:
        memeval(*CELL, f"llm.base_url={endpoint.base_url}")
        calls = endpoint.count()
        for path in (tmp_path / "outputs" / "runs").glob("*/run.json"):
            path.unlink()

        memeval(*words(server, endpoint))
        memeval(*words(server, endpoint), home=tmp_path / "other")
        assert endpoint.count() == calls

    assert without_times(records(tmp_path / "other")) == on_files


@pytest.mark.slow
def test_a_server_that_is_killed_is_waited_for(
    tmp_path: Path, server: Server, port: int, on_files: list[str]
) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.05) as endpoint:
        process = start(server, endpoint, tmp_path)
        wait_for(endpoint, 10, process)
        server.kill()
        time.sleep(1)
        server.start()
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
        assert "waiting for the store" in output and "is reachable again" in output
        assert repeated(endpoint) == 0

    assert without_times(records(tmp_path)) == on_files


@pytest.mark.slow
def test_unreachable_server_ends_the_run_and_loses_nothing(
    memeval: Command, tmp_path: Path, server: Server, port: int, on_files: list[str]
) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.05) as endpoint:
        process = start(server, endpoint, tmp_path, "store.patience_s=1")
        wait_for(endpoint, 10, process)
        server.kill()
        try:
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 1 and "store.patience_s" in output
            assert "Traceback" not in output
            refused = memeval(*words(server, endpoint), "top_k=3", check=False)
            assert refused.returncode == 2
            assert refused.stderr.startswith(f"memeval: the store {server.url} can't be used")
        finally:
            server.start()

        memeval(*words(server, endpoint))
        assert repeated(endpoint) == 0

    assert without_times(records(tmp_path)) == on_files


@pytest.mark.slow
def test_two_homes_share_calls_but_have_their_own_limits(
    tmp_path: Path, server: Server, port: int, on_files: list[str]
) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.05) as endpoint:
        # Another key with the same calls: neither process waits for the rows of the other.
        processes = [
            start(server, endpoint, tmp_path / "one"),
            start(server, endpoint, tmp_path / "other", "max_ingest_loss=0.02"),
        ]
        for process in processes:
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0, output

        # Each of the two commands has its own limit.
        assert repeated(endpoint) == 0 and 2 * LIMIT >= endpoint.peak > 1

    # The records contain who paid for a call, which differs.
    expected = [outcome(json.loads(line)) for line in on_files]
    for name in ("one", "other"):
        assert [outcome(row) for row in records(tmp_path / name)] == expected


@pytest.mark.slow
def test_frozen_server_is_noticed_quickly_and_waited_for(
    tmp_path: Path, server: Server, port: int, on_files: list[str]
) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.05) as endpoint:
        process = start(server, endpoint, tmp_path)
        assert process.stdout is not None
        wait_for(endpoint, 10, process)
        server.freeze()
        frozen = time.monotonic()
        try:
            line = next(line for line in process.stdout if "waiting for the store" in line)
            assert time.monotonic() - frozen < 5, line
        finally:
            server.thaw()

        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
        assert "is reachable again" in output and repeated(endpoint) == 0

    assert without_times(records(tmp_path)) == on_files


@pytest.mark.slow
def test_server_that_stays_frozen_ends_the_run_in_one_line(
    memeval: Command, tmp_path: Path, server: Server, port: int, on_files: list[str]
) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.05) as endpoint:
        process = start(server, endpoint, tmp_path, "store.patience_s=2")
        wait_for(endpoint, 10, process)
        server.freeze()
        try:
            frozen = time.monotonic()
            output, _ = process.communicate(timeout=120)
            # A silent connection is cut after 20 s, and one more try takes 4 s.
            assert time.monotonic() - frozen < 45
        finally:
            server.thaw()

        assert process.returncode == 1 and "Traceback" not in output, output
        (end,) = (line for line in output.splitlines() if line.startswith("memeval: "))
        assert "was unreachable for 2 s (store.patience_s)" in end
        memeval(*words(server, endpoint))
        # Replies that arrived meanwhile are kept in the home.
        assert repeated(endpoint) == 0

    assert without_times(records(tmp_path)) == on_files


def outcome(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("question_id", "hypothesis", "status", "verdict"))


@pytest.mark.slow
def test_another_home_takes_over_from_a_killed_process(
    memeval: Command, tmp_path: Path, server: Server, port: int, on_files: list[str]
) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.05) as endpoint:
        process = start(server, endpoint, tmp_path / "one")
        wait_for(endpoint, 10, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        memeval(*words(server, endpoint), home=tmp_path / "other")
        # Calls under way, and as many whose replies were on their way to the database.
        assert repeated(endpoint) <= 2 * LIMIT

    assert without_times(records(tmp_path / "other")) == on_files


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://host/database", "must begin with postgresql://"),
        ("postgresql://host", "must name a host and a database"),
        ("postgresql://user:secret@host/database", "contains a user name or a password"),
        ("postgresql://127.0.0.1:1/none", "can't be used"),
    ],
)
def test_invalid_store_url_is_reported_in_one_line(
    memeval: Command, url: str, message: str
) -> None:
    done = memeval("dataset=demo", "tracking=none", f"store.url={url}", check=False)
    assert done.returncode == 2 and message in done.stderr.splitlines()[0]
    assert "secret" not in done.stderr and "Traceback" not in done.stderr


def test_a_server_without_a_free_connection_is_waited_for_at_the_start(
    memeval: Command, tmp_path: Path, server: Server
) -> None:
    import psycopg

    of_run = ("dataset=demo", "dataset.limit_cases=1", "tracking=none", f"store.url={server.url}")
    with ExitStack() as held:
        with suppress(psycopg.OperationalError):
            while True:
                held.enter_context(psycopg.connect(server.url))

        refused = memeval(*of_run, "store.patience_s=0.5", check=False)
        assert refused.returncode == 1 and "Traceback" not in refused.stderr
        (end,) = (line for line in refused.stderr.splitlines() if line.startswith("memeval: "))
        assert "was unreachable for 0.5 s (store.patience_s)" in end
        assert end.endswith("sorry, too many clients already")

        words = [sys.executable, "-m", "memeval", *of_run]
        process = subprocess.Popen(
            words, env=environment(tmp_path), stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        assert "too many clients already (up to 300 s)" in process.stderr.readline()

    _, output = process.communicate(timeout=120)
    assert process.returncode == 0 and "is reachable again" in output, output


@pytest.mark.parametrize(
    ("reason", "error", "tries"),
    [
        ("the database system is starting up", StorageError, 3),
        ("the database system is not yet accepting connections", StorageError, 3),
        ('database "none" does not exist', UserError, 1),
    ],
)
def test_starting_server_is_tried_again_but_a_wrong_name_is_not(
    reason: str, error: type[Exception], tries: int
) -> None:
    asked: list[bytes] = []

    class Refusing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            # The client first asks whether the server speaks TLS.
            while (size := int.from_bytes(self.request.recv(4), "big")) == 8:
                self.request.recv(4)
                self.request.sendall(b"N")

            asked.append(self.request.recv(size))
            fields = b"".join(b"%s%s\0" % (b"SM"[n : n + 1], text) for n, text in enumerate(texts))
            self.request.sendall(b"E" + (len(fields) + 5).to_bytes(4, "big") + fields + b"\0")

    texts = (b"FATAL", reason.encode())
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Refusing) as refusing:
        threading.Thread(target=refusing.serve_forever).start()
        messages: list[str] = []
        url = f"postgresql://127.0.0.1:{refusing.server_address[1]}/none"
        try:
            with pytest.raises(error, match=reason):
                open_database(url, 0.5, messages.append)
        finally:
            refusing.shutdown()

    assert len(asked) == tries and len(messages) == (1 if tries > 1 else 0)


@pytest.mark.slow
def test_sweep_runs_on_postgres_and_needs_one_store_for_all_runs(
    memeval: Command, tmp_path: Path, server: Server, port: int
) -> None:
    several = "store.patience_s=5,6"
    with ScriptedEndpoint(port=port) as endpoint:
        memeval("-m", *words(server, endpoint), "top_k=3,5", "system=bm25,rag")
        calls = endpoint.count()
        memeval("-m", *words(server, endpoint), "top_k=3,5", home=tmp_path / "other")
        assert endpoint.count() == calls
        refused = memeval("-m", *words(server, endpoint), several, "seed=4", check=False)

    assert refused.returncode == 2 and "the same for all runs" in refused.stderr
    assert "Traceback" not in refused.stderr
