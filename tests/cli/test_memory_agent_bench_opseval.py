"""The demonstrations of memory_agent_bench and opseval on the real command line, offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import memeval

QUIET = "tracking=none"


@pytest.mark.slow
def test_memory_agent_bench_demo_runs_offline_without_model_judging(
    tmp_path: Path,
) -> None:
    done = memeval(tmp_path, "dataset=demo_memory_agent_bench", "system=bm25", QUIET)
    assert done.status == 0 and "12/12" in done.err + done.out
    names = {"AR", "TTL", "LRU", "CR"}
    assert any(names <= set(line.split()) for line in done.out.splitlines()), (
        "one table has all four splits"
    )
    refused = memeval(tmp_path, "dataset=demo_memory_agent_bench", "dataset.categories=null", QUIET)
    assert refused.status == 2
    assert (
        refused.message == "memeval: judge=memory_agent_bench needs a language model for "
        "longmemeval_demo, infbench_sum_demo, but llm=extractive is not one"
    )
    whole = memeval(
        tmp_path,
        "dataset=demo_memory_agent_bench",
        "dataset.categories=null",
        "judge=keyword",
        QUIET,
    )
    assert whole.status == 0 and "15/15" in whole.err + whole.out


@pytest.mark.slow
def test_memory_agent_bench_refuses_invalid_settings(tmp_path: Path) -> None:
    assert (
        "granularity=session does not apply to dataset=demo_memory_agent_bench"
        in memeval(
            tmp_path, "dataset=demo_memory_agent_bench", "granularity=session", QUIET
        ).message
    )
    assert (
        "Did you mean: ruler_qa1_2k"
        in memeval(
            tmp_path, "dataset=demo_memory_agent_bench", "dataset.subset=ruler_qa1_2", QUIET
        ).message
    )
    fetched = memeval(tmp_path, "data", "fetch", "memory_agent_bench")
    assert (
        fetched.status == 2
        and "can't be fetched directly" in fetched.message
        and "huggingface.co/datasets/ai-hyz" in fetched.err
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "system", ["bm25", "rag", "no_memory", "full_history", "cogcanvas", "mem0"]
)
def test_opseval_runs_closed_book_on_every_system(tmp_path: Path, system: str) -> None:
    done = memeval(
        tmp_path, "dataset=demo_opseval", f"system={system}", "dataset.limit_cases=3", QUIET
    )
    assert done.status == 0, done.err
    assert "INVALID" not in done.out


def test_choices_and_free_text_are_judged_in_one_run(tmp_path: Path) -> None:
    done = memeval(tmp_path, "dataset=demo_opseval", "system=bm25", "judge=keyword", QUIET)
    assert done.status == 0
    records = _records(tmp_path)
    assert {row["verdict"]["judge"] for row in records if "choices" in row} == {"accuracy"}
    assert {row["verdict"]["judge"] for row in records if "choices" not in row} == {"keyword"}
    assert len(records) == 20 and sum("choices" not in row for row in records) == 2


def test_verify_lists_every_repair(tmp_path: Path) -> None:
    done = memeval(tmp_path, "data", "verify", "demo_opseval")
    assert done.status == 0
    for row_id in (
        "Wired Network-7",
        "5G Communication-1",
        "5G Communication-2",
        "Oracle Database-3",
        "Log Analysis-3",
    ):
        assert f"{row_id}: " in done.out


def _records(home: Path) -> list[dict[str, Any]]:
    (path,) = home.glob("outputs/runs/*/records.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
