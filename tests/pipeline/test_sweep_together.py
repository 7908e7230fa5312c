"""The runs of a sweep are checked together before the first call, run concurrently, and make each
call once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import Command, start, without_times
from doubles.endpoint import ScriptedEndpoint
from ports import free_port

CELLS = ("-m", "system=bm25,rag", "top_k=3,10")
SMALL = ("dataset=demo", "dataset.limit_cases=3", "dataset.limit_questions=4", "tracking=none")
MODEL = ("llm=openai", "llm.model=gpt-4o-mini", "judge=llm", "llm.max_concurrency=4")


def asking(endpoint: ScriptedEndpoint) -> tuple[str, ...]:
    return (*SMALL, *MODEL, f"llm.base_url={endpoint.base_url}")


def all_records(home: Path) -> dict[str, list[str]]:
    """The records of each run without timings."""
    return {
        path.parent.name: without_times(
            [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        )
        for path in sorted((home / "outputs" / "runs").glob("*/records.jsonl"))
    }


def without_usage(records: dict[str, list[str]]) -> dict[str, list[Any]]:
    """The records without usage: of two cells that make the same request, only the first one
    pays.
    """
    return {
        run: [{**json.loads(row), "usage": None} for row in rows] for run, rows in records.items()
    }


def asked_for(endpoint: ScriptedEndpoint) -> Counter[str]:
    return Counter(repr(body) for _, body in endpoint.requests)


@pytest.fixture(scope="module")
def port() -> int:
    """The same port for all runs: the URL is part of a cell's identity."""
    return free_port()


@pytest.mark.slow
def test_wrong_name_in_a_later_cell_stops_the_sweep_before_any_call(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint() as endpoint:
        words = ("-m", "top_k=1,2,3,4,5,6,7", "system=bm25,bm52", *asking(endpoint))
        done = memeval(*words, "embedder=tfidf", check=False)
        assert endpoint.count() == 0

    assert done.returncode == 2
    assert done.stderr.startswith("memeval: unknown system 'bm52'. Did you mean: bm25?")
    assert "nothing was run: 7 of 14 runs can't be started" in done.stderr
    assert not (tmp_path / "outputs" / "runs").exists()


def test_unset_api_key_is_reported_before_the_first_call(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        addresses = f"llm.base_url={endpoint.base_url},https://api.openai.com/v1"
        words = (*SMALL, *MODEL, addresses, "llm.api_key_env=KEY_THAT_IS_NOT_SET")
        done = memeval("-m", *words, check=False)
        assert endpoint.count() == 0

    assert done.returncode == 2
    assert "KEY_THAT_IS_NOT_SET" in done.stderr


def test_named_sweep_runs_all_its_cells(memeval: Command, tmp_path: Path) -> None:
    memeval("+sweep=top_k_curve", *SMALL, "system=no_memory")
    assert len(all_records(tmp_path)) > 1


@pytest.mark.slow
def test_sweep_gives_the_same_records_as_cells_run_one_by_one(
    memeval: Command, tmp_path: Path, port: int
) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    calls = []
    for home, launcher in ((alone, "basic"), (together, "memeval")):
        with ScriptedEndpoint(port=port) as endpoint:
            memeval(*CELLS, *asking(endpoint), f"hydra/launcher={launcher}", home=home)
            calls.append(asked_for(endpoint))

    assert calls[0] == calls[1]
    assert max(calls[1].values()) == 1
    records = [without_usage(all_records(home)) for home in (alone, together)]
    assert len(records[0]) == 4
    assert records[0] == records[1]


@pytest.mark.slow
def test_offline_sweep_gives_the_same_records_as_cells_run_one_by_one(
    memeval: Command, tmp_path: Path
) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    words = (*CELLS, *SMALL)
    memeval(*words, "hydra/launcher=basic", home=alone)
    memeval(*words, "hydra.launcher.processes=2", home=together)
    assert all_records(alone) == all_records(together)
    assert len(all_records(alone)) == 4


@pytest.mark.slow
def test_cells_that_differ_only_in_judge_share_answers(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint(latency_s=0.02) as endpoint:
        own = [word for word in asking(endpoint) if word != "judge=llm"]
        words = (*own, "judge=keyword,llm,token_f1")
        memeval("-m", *words, "system=bm25")
        asked = asked_for(endpoint)

    assert len(all_records(tmp_path)) == 3
    assert len(list((tmp_path / "outputs" / "answers").glob("*[0-9a-f].jsonl"))) == 1
    assert max(asked.values()) == 1
    assert len(asked) == 24, "12 answers, which one of three judges passes to a model"


def wait_for_calls(endpoint: ScriptedEndpoint, count: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while endpoint.count() < count:
        assert process.poll() is None, "it ended early"
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.slow
def test_two_concurrent_invocations_make_each_call_once(tmp_path: Path, port: int) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.02) as endpoint:
        words = (*CELLS, *asking(endpoint))
        processes = [start(tmp_path, *words, stderr=subprocess.PIPE) for _ in range(2)]
        for process in processes:
            _, output = process.communicate(timeout=300)
            assert process.returncode == 0, output
        assert max(asked_for(endpoint).values()) == 1

    assert len(all_records(tmp_path)) == 4


@pytest.mark.slow
def test_killed_sweep_resumes_and_repeats_only_calls_in_flight(
    memeval: Command, tmp_path: Path, port: int
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with ScriptedEndpoint(port=port) as endpoint:
        memeval(*CELLS, *asking(endpoint), home=whole)
        calls = endpoint.count()

    with ScriptedEndpoint(port=port, latency_s=0.05) as endpoint:
        process = start(killed, *CELLS, *asking(endpoint), stderr=subprocess.PIPE)
        wait_for_calls(endpoint, calls // 2, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        memeval(*CELLS, *asking(endpoint), home=killed)
        repeated = endpoint.count() - calls
        assert 0 <= repeated <= 4, "only calls under way when the process died are asked again"

    assert without_usage(all_records(killed)) == without_usage(all_records(whole))


@pytest.mark.slow
def test_ctrl_c_ends_a_sweep_and_the_same_command_resumes_it(
    memeval: Command, tmp_path: Path, port: int
) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.05) as endpoint:
        words = (*CELLS, *asking(endpoint))
        process = start(tmp_path, *words, stderr=subprocess.PIPE)
        wait_for_calls(endpoint, 20, process)
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "stopped at: " in output and "same command" in output
        assert "Traceback" not in output
        memeval(*words)
        assert max(asked_for(endpoint).values()) == 1, "calls under way were finished"

    assert len(all_records(tmp_path)) == 4


@pytest.mark.slow
def test_each_run_has_all_notes_on_the_data_that_the_runs_share(
    memeval: Command, tmp_path: Path
) -> None:
    """One call at a time: the next run reads its first cases before the one before it ends."""
    with ScriptedEndpoint() as endpoint:
        data = ("dataset=demo_longmemeval", "tracking=none", "plots=false")
        limits = ("llm=openai", "llm.max_concurrency=1", f"llm.base_url={endpoint.base_url}")
        memeval("-m", "system=bm25,rag,dense", *data, *limits)

    for summary in (tmp_path / "outputs" / "runs").glob("*/run.json"):
        notes = [note["text"] for note in json.loads(summary.read_bytes())["notes"]]
        assert [note.partition(" questions")[0] for note in notes] == [
            "evidence: 2 of 8",
            "time: 1 of 8",
        ]
