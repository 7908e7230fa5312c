"""Sweeps on a Ray cluster: the same records as on one machine, one limit, and nothing is lost if a
worker is killed.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from conftest_pipeline import Command, environment, outcomes, repeated
from conftest_pipeline import start as start_command
from doubles.endpoint import ScriptedEndpoint
from ports import free_port
from postgres_server import PROGRAMS, Server
from ray_cluster import RayCluster

from memeval.errors import UserError, WorldError

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'memeval-bench[ray]'"
)
HERE = Path(__file__).parent
LIMIT = 4
KEY = "sk-of-a-test-0123456789"
CELLS = (
    "-m",
    "dataset=demo",
    "dataset.limit_cases=3",
    "dataset.limit_questions=8",
    "system=bm25,rag",
    "top_k=3,5",
    "llm=openai",
    "llm.model=gpt-4o-mini",
    "llm.api_key_env=MY_OWN_KEY",
    "judge=llm",
    f"llm.max_concurrency={LIMIT}",
    "tracking=none",
)
RAY = ("hydra/launcher=ray",)
start = partial(start_command, MY_OWN_KEY=KEY)


def slow(*values: object) -> Any:
    """A row of a parameter table that only runs with the slow tests."""
    return pytest.param(*values, marks=pytest.mark.slow)


def test_the_sockets_of_a_cluster_have_short_paths_in_any_tmpdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On macOS, TMPDIR alone leaves too few characters."""
    import ray

    from memeval.runs.compute.ray_workers import Cluster, RaySettings

    options: dict[str, Any] = {}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **given: options.update(given))
    monkeypatch.setattr(ray, "get_runtime_context", mock.MagicMock)
    cluster = Cluster(RaySettings(address=None, workers=1, cases=None), cores=1)
    cluster.close()
    assert len(options["_temp_dir"]) <= 103 - 63


def test_a_cluster_that_does_not_start_is_not_blamed_on_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine with much other work, Ray gives up after half a minute."""
    import ray

    from memeval.runs.compute.ray_workers import Cluster, RaySettings

    late = Exception("The current node timed out during startup.")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", mock.Mock(side_effect=late))
    with pytest.raises(WorldError, match="could not be started on this machine"):
        Cluster(RaySettings(address=None, workers=1, cases=None), cores=1)

    with pytest.raises(UserError, match="the Ray cluster at auto can't be used"):
        Cluster(RaySettings(address="auto", workers=1, cases=None), cores=1)


def test_sigterm_while_a_cluster_starts_is_not_a_failure_of_ray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    from memeval.runs.compute.ray_workers import Cluster, RaySettings

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    # Ray's own handler of the signal ends the process.
    monkeypatch.setattr(ray, "init", mock.Mock(side_effect=SystemExit(signal.SIGTERM)))
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            Cluster(RaySettings(address=None, workers=1, cases=None), cores=1)
    finally:
        signal.signal(signal.SIGTERM, before)


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0 and KEY not in output, output
    return output


def wait_for(endpoint: ScriptedEndpoint, calls: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while endpoint.count() < calls and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)

    assert process.poll() is None and endpoint.count() >= calls


def workers_of(cluster: RayCluster) -> list[int]:
    """Process ids of the cluster's workers, which have log files open in its folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "cmdline").read_bytes()
            opened = [str(file.readlink()) for file in (folder / "fd").iterdir()]
        except OSError:
            continue

        if name.startswith(b"ray::Worker") and any(cluster.folder in path for path in opened):
            found.append(int(folder.name))

    return found


@pytest.fixture(scope="module")
def port() -> int:
    """The same port, and so the same URL, for all runs: the URL is part of a run's identity."""
    return free_port()


@pytest.fixture(scope="module")
def on_one_machine(
    tmp_path_factory: pytest.TempPathFactory, port: int
) -> tuple[dict[str, list[str]], int]:
    """The records by our own launcher, and the number of calls for them."""
    home = tmp_path_factory.mktemp("own")
    with ScriptedEndpoint(port=port) as endpoint:
        finish(start(home, *CELLS, f"llm.base_url={endpoint.base_url}"))
        return outcomes(home), endpoint.count()


def test_local_cluster_makes_the_same_records(memeval: Command, tmp_path: Path) -> None:
    others = [
        word for word in CELLS if not word.startswith(("system=", "dataset.limit_questions="))
    ]
    prices = tmp_path / "prices.yaml"
    prices.write_text("{date: 2026-01-31, models: {gpt-4o-mini: {input: 1, output: 2}}}")
    words = (*others, "system=bm25", "dataset.limit_questions=2", f"prices={prices}")
    one, other = tmp_path / "one", tmp_path / "other"
    with ScriptedEndpoint() as endpoint:
        address = f"llm.base_url={endpoint.base_url}"
        ray = (*RAY, "hydra.launcher.workers=1")
        done = memeval(*words, address, *ray, home=one, MY_OWN_KEY=KEY)
        assert f"of the {LIMIT} request slots in use" in done.stderr
        calls = endpoint.count()
        assert calls and repeated(endpoint) == 0 and endpoint.peak <= LIMIT
        # Another home: it knows none of the results, so all calls are made again.
        memeval(*words, address, home=other, MY_OWN_KEY=KEY)
        assert endpoint.count() == 2 * calls

    assert outcomes(one) == outcomes(other)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("hydra.launcher.address=nonsense",), "must be HOST:PORT"),
        slow(("hydra.launcher.address=ray://127.0.0.1:10001",), "must be HOST:PORT"),
        slow(("hydra.launcher.workers=0",), "must be at least 1"),
        slow(("+hydra.launcher.foo=1",), "unexpected keyword argument 'foo'"),
        slow(("hydra.launcher.variables=[NOT_SET_ANYWHERE]",), "NOT_SET_ANYWHERE is not set"),
        slow(("budget.calls=5",), "a budget can't be enforced with hydra/launcher=ray"),
    ],
)
def test_invalid_launcher_setting_is_reported_in_one_line(
    memeval: Command, words: tuple[str, ...], message: str
) -> None:
    small = ("-m", "dataset=demo", "top_k=3,5", "tracking=none")
    done = memeval(*small, *RAY, *words, check=False)
    assert done.returncode == 2 and message in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr


def test_unreachable_cluster_is_reported_in_one_line(memeval: Command) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        words = ("-m", "dataset=demo", "top_k=3,5", "tracking=none", *RAY)
        done = memeval(*words, f"hydra.launcher.address={address}", check=False)

    assert done.returncode == 2
    assert done.stderr.startswith(f"memeval: the Ray cluster at {address} can't be reached")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_two_nodes_need_a_shared_store(memeval: Command, tmp_path: Path) -> None:
    words = ("-m", "dataset=demo", "top_k=3,5", "tracking=none", *RAY)
    with RayCluster(nodes=2) as cluster:
        done = memeval(*words, f"hydra.launcher.address={cluster.address}", check=False)

    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.startswith("memeval: the Ray cluster has several nodes")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    if not PROGRAMS or importlib.util.find_spec("psycopg") is None:
        pytest.skip("needs PostgreSQL's server (apt-get install postgresql) and psycopg")

    monkeypatch.setenv("PGUSER", "memeval")
    server = Server()
    yield server
    server.close()


@pytest.mark.slow
def test_two_nodes_make_the_records_of_one_machine(
    tmp_path: Path, server: Server, port: int, on_one_machine: tuple[dict[str, list[str]], int]
) -> None:
    records, calls = on_one_machine
    with RayCluster(nodes=2) as cluster, ScriptedEndpoint(port=port, latency_s=0.02) as endpoint:
        words = (*CELLS, f"llm.base_url={endpoint.base_url}", f"store.url={server.url}", *RAY)
        said = finish(start(tmp_path, *words, f"hydra.launcher.address={cluster.address}"))
        assert f"of the {LIMIT} request slots in use" in said
        assert endpoint.count() == calls and repeated(endpoint) == 0
        assert 1 < endpoint.peak <= LIMIT
        logs = [path for path in Path(cluster.folder).rglob("*") if path.is_file()]
        assert logs and not any(KEY.encode() in path.read_bytes() for path in logs)

    assert outcomes(tmp_path) == records


@pytest.mark.slow
@pytest.mark.parametrize("with_postgres", [False, True])
def test_killed_worker_loses_only_its_open_calls(
    tmp_path: Path,
    port: int,
    on_one_machine: tuple[dict[str, list[str]], int],
    request: pytest.FixtureRequest,
    with_postgres: bool,
) -> None:
    records, _ = on_one_machine
    store = []
    if with_postgres:
        store = [f"store.url={request.getfixturevalue('server').url}"]

    nodes = 2 if with_postgres else 1
    with RayCluster(nodes) as cluster, ScriptedEndpoint(port=port, latency_s=0.1) as endpoint:
        words = (*CELLS, f"llm.base_url={endpoint.base_url}", *store, *RAY)
        address = f"hydra.launcher.address={cluster.address}"
        process = start(tmp_path, *words, address)
        wait_for(endpoint, 10, process)
        os.kill(workers_of(cluster)[0], signal.SIGKILL)
        said = finish(process)
        assert "a Ray worker died" in said
        assert repeated(endpoint) <= LIMIT and endpoint.peak <= LIMIT

    assert outcomes(tmp_path) == records


@pytest.mark.slow
def test_cases_of_one_run_are_left_for_workers_that_are_starting(tmp_path: Path) -> None:
    others = [word for word in CELLS if not word.startswith(("system=", "top_k="))]
    with ScriptedEndpoint(latency_s=0.4) as endpoint:
        words = (*others, "system=bm25", f"llm.base_url={endpoint.base_url}")
        said = finish(start(tmp_path, *words, *RAY, "hydra.launcher.workers=3"))
        # Three workers have 2, 1 and 1 slots: the division leaves no slot unused.
        assert endpoint.peak == LIMIT

    assert f"of the {LIMIT} request slots in use" in said


@pytest.mark.slow
def test_worker_killed_before_it_is_ready_is_replaced(
    tmp_path: Path, port: int, on_one_machine: tuple[dict[str, list[str]], int]
) -> None:
    with RayCluster(nodes=1) as cluster, ScriptedEndpoint(port=port) as endpoint:
        words = (*CELLS, f"llm.base_url={endpoint.base_url}", *RAY)
        process = start(tmp_path, *words, f"hydra.launcher.address={cluster.address}")
        until = time.monotonic() + 60
        while not workers_of(cluster) and time.monotonic() < until:
            time.sleep(0.01)

        os.kill(workers_of(cluster)[0], signal.SIGKILL)
        finish(process)

    assert outcomes(tmp_path) == on_one_machine[0]


@pytest.mark.slow
# A terminal sends Ctrl-C to the whole group, and `kill` a signal to the process.
@pytest.mark.parametrize(
    ("send", "number"), [(os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM)]
)
def test_signal_finishes_calls_and_keeps_results(
    tmp_path: Path,
    port: int,
    on_one_machine: tuple[dict[str, list[str]], int],
    send: Callable[[int, int], None],
    number: signal.Signals,
) -> None:
    records, _ = on_one_machine
    with ScriptedEndpoint(port=port, latency_s=0.1) as endpoint:
        words = (*CELLS, f"llm.base_url={endpoint.base_url}", *RAY, "hydra.launcher.workers=2")
        process = start(tmp_path, *words)
        wait_for(endpoint, 20, process)
        send(process.pid, number)
        began = time.monotonic()
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 128 + number and "Traceback" not in output, output
        assert time.monotonic() - began < 20
        assert "0 replies lost" in output
        finish(start(tmp_path, *words))
        assert repeated(endpoint) == 0, "calls under way were finished"

    assert outcomes(tmp_path) == records


CANCELLED = """
import asyncio, sys
import memeval


async def main():
    sweep = asyncio.create_task(memeval.asweep(*sys.argv[1:]))
    await asyncio.to_thread(sys.stdin.readline)
    sweep.cancel()
    try:
        await sweep
    except asyncio.CancelledError:
        print("cancelled", "ray" in sys.modules)


asyncio.run(main())
"""


@pytest.mark.slow
def test_cancelled_python_sweep_finishes_its_calls_on_ray(
    tmp_path: Path, port: int, on_one_machine: tuple[dict[str, list[str]], int]
) -> None:
    records, _ = on_one_machine
    with ScriptedEndpoint(port=port, latency_s=0.1) as endpoint:
        words = (*CELLS, f"llm.base_url={endpoint.base_url}", *RAY, "hydra.launcher.workers=2")
        process = subprocess.Popen(
            [sys.executable, "-c", CANCELLED, *words[1:]],
            env=environment(tmp_path, MY_OWN_KEY=KEY),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        wait_for(endpoint, 20, process)
        output, _ = process.communicate("now\n", timeout=60)
        assert process.returncode == 0 and "cancelled True" in output, output
        assert "Traceback" not in output and "never retrieved" not in output
        finish(start(tmp_path, *words))
        assert repeated(endpoint) == 0, "calls under way were finished"

    assert outcomes(tmp_path) == records


CUT_OFF = """
import asyncio, os, socket, sys
import memeval


def cut():
    for file in os.listdir("/proc/self/fd"):
        try:
            connection = socket.socket(fileno=os.dup(int(file)))
            # A socket that listens has no peer.
            if connection.family != socket.AF_UNIX and connection.getpeername():
                connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # not a connection


async def main():
    sweep = asyncio.create_task(memeval.asweep(*sys.argv[1:]))
    await asyncio.to_thread(sys.stdin.readline)
    # More than once: Ray sometimes connects again before it notices.
    for _ in range(3):
        cut()
        await asyncio.sleep(0.3)

    await sweep


asyncio.run(main())
"""


@pytest.mark.slow
def test_worker_whose_connection_breaks_is_replaced(
    tmp_path: Path, port: int, on_one_machine: tuple[dict[str, list[str]], int]
) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.1) as endpoint:
        words = (*CELLS, f"llm.base_url={endpoint.base_url}", *RAY, "hydra.launcher.workers=1")
        process = subprocess.Popen(
            [sys.executable, "-c", CUT_OFF, *words[1:]],
            env=environment(tmp_path, MY_OWN_KEY=KEY),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        wait_for(endpoint, 20, process)
        output, _ = process.communicate("now\n", timeout=60)
        assert process.returncode == 0, output
        assert endpoint.peak <= LIMIT

    assert outcomes(tmp_path) == on_one_machine[0]
