"""Runs with many request slots are spread over processes: the same records, one limit, and nothing
is paid twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest_pipeline import HURRIED, Command, outcomes, repeated, start
from doubles.endpoint import ScriptedEndpoint
from ports import free_port

from memeval.process.environment import count_cores
from memeval.runs.compute import workers
from memeval.runs.compute.computing import END, STOP, WORK, CommandServer, UnitComputer

HERE = Path(__file__).parent
LIMIT = 4
CELL = (
    "dataset=demo",
    "dataset.limit_cases=3",
    "dataset.limit_questions=4",
    "llm=openai",
    "llm.model=gpt-4o-mini",
    "judge=llm",
    f"llm.max_concurrency={LIMIT}",
    "tracking=none",
)
SWEEP = ("-m", *CELL, "hydra.launcher.processes=2")
FEW = {"memeval.runs.compute.workers.SLOTS": 2}
"""With this constant, a second process pays off from four slots."""


def test_two_processes_make_the_same_records_as_one(memeval: Command, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    port = free_port()  # the URL is part of a run's identity
    words = ("system=bm25,rag", "top_k=3,5")
    with ScriptedEndpoint(latency_s=0.02, port=port) as endpoint:
        url = f"llm.base_url={endpoint.base_url}"
        memeval("-m", *CELL, "hydra.launcher.processes=1", *words, url, home=one)
        calls = endpoint.count()

    with ScriptedEndpoint(latency_s=0.02, port=port) as endpoint:
        done = memeval(*SWEEP, *words, url, home=two, constants=FEW)
        assert endpoint.count() == calls and repeated(endpoint) == 0
        assert endpoint.peak <= LIMIT

    assert len(outcomes(one)) == 4 and outcomes(one) == outcomes(two)
    assert f"of the {LIMIT} request slots in use" in done.stderr
    assert f"{calls:,} calls" in done.stderr


@pytest.mark.skipif(count_cores() < 2, reason="needs two cores")
@pytest.mark.parametrize("constants", [FEW, {"memeval.pipeline.open.cell.LARGE": 1}])
def test_single_run_is_spread_over_processes(
    memeval: Command, tmp_path: Path, constants: dict[str, int]
) -> None:
    mark = tmp_path / "mark"
    words = (*CELL, "system=no_memory", "system.class=killed_worker:KilledOnce")
    variables = {"PYTHONPATH": str(HERE), "KILLED_MARK": str(mark)}
    with ScriptedEndpoint() as endpoint:
        memeval(*words, f"llm.base_url={endpoint.base_url}", constants=constants, **variables)

    assert mark.exists(), "no process was killed"
    (rows,) = outcomes(tmp_path).values()
    assert [json.loads(row)["status"] for row in rows] == ["ok"] * 12


def test_killed_process_loses_only_its_calls_under_way(memeval: Command, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    words = ("system=no_memory", "system.class=killed_worker:KilledOnce", "seed=1,2")
    variables = {"PYTHONPATH": str(HERE), "KILLED_MARK": str(mark), "KILLED_AFTER": "16"}
    with ScriptedEndpoint(latency_s=0.02) as endpoint:
        url = f"llm.base_url={endpoint.base_url}"
        constants = {**FEW, "memeval.runs.compute.computing.STATE_S": 0.01}
        done = memeval(*SWEEP, *words, url, constants=constants, **variables)
        assert repeated(endpoint) <= LIMIT

    assert mark.exists(), "no process was killed"
    assert "answer 12/12, judge 12/12" in done.stderr
    assert f"of the {LIMIT} request slots in use" in done.stderr
    statuses = [json.loads(row)["status"] for rows in outcomes(tmp_path).values() for row in rows]
    assert statuses == ["ok"] * 24


def test_one_conversation_gets_all_slots(memeval: Command) -> None:
    cell = ("-m", "dataset=demo", "dataset.limit_cases=1", *CELL[3:], "system=bm25")
    with ScriptedEndpoint(latency_s=0.2) as endpoint:
        words = (*cell, "hydra.launcher.processes=2", f"llm.base_url={endpoint.base_url}")
        memeval(*words, constants={**FEW, "memeval.runs.compute.workers.IDLE_S": 60.0})
        assert endpoint.peak == LIMIT


@pytest.mark.slow
def test_all_slots_are_used_with_an_odd_limit(memeval: Command) -> None:
    odd = [word.replace(f"concurrency={LIMIT}", "concurrency=5") for word in SWEEP]
    with ScriptedEndpoint(latency_s=0.2) as endpoint:
        url = f"llm.base_url={endpoint.base_url}"
        memeval(*odd, "system=bm25,rag", url, constants=FEW)
        assert endpoint.peak == 5


@dataclass
class Seat:
    """A worker as seen by its pool."""

    open_count: int
    position: int = 0
    idle_since: float = 0.0
    is_ending: bool = False
    shares: list[int] = field(default_factory=list)

    def share(self, processes: int) -> None:
        self.shares.append(processes)

    def retire(self) -> None:
        self.is_ending = True


def test_idle_processes_end_and_give_their_slots_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(monotonic=lambda: 100.0)
    monkeypatch.setattr(workers, "time", clock)
    pool: Any = workers._Pool(4, lambda: pytest.fail("none is needed"))
    busy, just_idle, idle = Seat(3), Seat(0, idle_since=99.5), Seat(0, idle_since=90.0)
    pool.workers = [busy, just_idle, idle]
    pool.rebalance(workers.IDLE_S)
    assert idle.is_ending and not just_idle.is_ending
    assert busy.shares == just_idle.shares == [2], "the fourth never started"
    pool.rebalance(workers.IDLE_S)
    assert busy.shares == [2]

    clock.monotonic = lambda: 200.0
    busy.open_count = 0
    pool.rebalance(workers.IDLE_S)
    assert not just_idle.is_ending, "one is needed if more units come"
    busy.open_count = 1
    pool.rebalance(workers.IDLE_S)
    assert just_idle.is_ending and busy.shares == [2, 1] and pool.most == 1


def test_after_the_last_unit_slots_are_passed_on_immediately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(monotonic=lambda: 100.0)
    monkeypatch.setattr(workers, "time", clock)
    pool: Any = workers._Pool(2, lambda: pytest.fail("none is needed"))
    busy, done = Seat(1), Seat(0, idle_since=100.0)
    pool.workers = [busy, done]
    pool.rebalance(0)
    assert done.is_ending and busy.shares == [1]


def test_at_most_four_memories_are_built_concurrently(memeval: Command, tmp_path: Path) -> None:
    numbers = tmp_path / "numbers"
    data = ("dataset=synthetic", "dataset.tokens=300", "dataset.n_cases=12", *CELL[3:-2])
    words = (*data, "llm.max_concurrency=16", "tracking=none", "system=no_memory")
    variables = {"PYTHONPATH": str(HERE), "KILLED_MARK": str(numbers)}
    with ScriptedEndpoint() as endpoint:
        url = f"llm.base_url={endpoint.base_url}"
        memeval(*words, "system.class=killed_worker:Built", url, **variables)

    built = [int(line) for line in numbers.read_text().split()]
    assert max(built) == 4


def test_wait_noticed_by_both_processes_is_reported_once(memeval: Command) -> None:
    port = free_port()
    url = f"llm.base_url=http://127.0.0.1:{port}/v1"
    slow = ("llm.patience_s=1", "stop_after_failures=null", "system=bm25,rag")

    def refuse(_: object) -> dict[str, object]:
        return {"error": {"code": 503, "message": "overloaded"}}

    with ScriptedEndpoint(refuse, port=port):
        done = memeval(*SWEEP, *slow, url, constants={**FEW, **HURRIED}, check=False)

    waits = [line for line in done.stderr.splitlines() if line.startswith("waiting for http")]
    assert len(waits) == len(set(waits)) >= 1, done.stderr


def test_dead_endpoint_is_reported_once(memeval: Command) -> None:
    url = f"llm.base_url=http://127.0.0.1:{free_port()}/v1"
    done = memeval(*SWEEP, "system=bm25,rag", url, constants=FEW, check=False)
    assert done.returncode == 2 and done.stderr.count("connection refused") == 1
    assert "Traceback" not in done.stderr


def test_sweep_with_a_budget_makes_exactly_its_calls(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        words = (*SWEEP, "system=bm25,rag", "budget.calls=9", f"llm.base_url={endpoint.base_url}")
        done = memeval(*words, constants=FEW, check=False)
        assert endpoint.count() == 9

    assert done.returncode == 1 and "9 of budget.calls=9 are spent" in done.stderr


def test_case_stopped_before_it_begins_is_reported_as_failed() -> None:
    sent: list[Any] = []
    server = CommandServer(UnitComputer({}, 1), sent.append)

    async def serve() -> None:
        serving = asyncio.ensure_future(server.serve())
        await asyncio.sleep(0)
        for command in (WORK, 7, SimpleNamespace(cell=0)), (STOP, 7, None), END:
            server.enqueue(command)

        await serving

    asyncio.run(serve())
    assert [message[:2] for message in sent] == [(7, "failed")]


def test_command_does_not_wait_for_a_loop_that_could_not_begin() -> None:
    server = CommandServer(UnitComputer({}, 1), lambda message: None)
    sending = threading.Thread(target=server.enqueue, args=(END,), daemon=True)
    sending.start()
    server.close()
    sending.join(60.0)
    assert not sending.is_alive()


@pytest.mark.slow
def test_ctrl_c_waits_for_the_calls_of_all_processes(tmp_path: Path) -> None:
    spread = [word.replace(f"concurrency={LIMIT}", "concurrency=64") for word in SWEEP]
    words = [*spread, "system=bm25,rag"]
    with ScriptedEndpoint(latency_s=0.5) as endpoint:
        words.append(f"llm.base_url={endpoint.base_url}")
        first = start(tmp_path, *words)
        until = time.monotonic() + 60
        while endpoint.count() < 20 and time.monotonic() < until:
            time.sleep(0.01)

        os.killpg(first.pid, signal.SIGINT)
        output, _ = first.communicate(timeout=60)
        assert first.returncode == 130 and "model calls in progress" in output
        assert "0 replies lost" in output and "Traceback" not in output

        second = start(tmp_path, *words)
        output, _ = second.communicate(timeout=120)
        assert second.returncode == 0, output
        assert repeated(endpoint) == 0
