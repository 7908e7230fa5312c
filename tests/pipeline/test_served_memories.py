"""Whole runs with a memory behind HTTP: a model at an endpoint, several cases at once, faults, and
the same command again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest_pipeline import Command, records, summary
from doubles.endpoint import ScriptedEndpoint
from served_examples import ScriptedMemory

FEW = (
    "dataset.limit_cases=3",
    "dataset.limit_questions=4",
    "judge=keyword",
    "tracking=none",
    "llm=openai",
    "llm.model=m",
)
CASES, REPEATS = 3, 2


@pytest.fixture
def service() -> Iterator[ScriptedMemory]:
    with ScriptedMemory() as serving:
        yield serving


@pytest.mark.slow
def test_failed_searches_are_repeated_by_the_same_command(
    memeval: Command, tmp_path: Path, service: ScriptedMemory
) -> None:
    waiting: Counter[str] = Counter()

    def ready_the_third_time(body: dict[str, str], usual: object) -> dict[str, bool]:
        waiting[body["namespace"]] += 1
        return {"ready": waiting[body["namespace"]] % 3 == 0}

    service.change["ready"] = ready_the_third_time
    with ScriptedEndpoint() as endpoint:
        words = (
            *("system=http", f"system.base_url={service.address}", "system.max_retries=0"),
            *(*FEW, f"llm.base_url={endpoint.base_url}", f"num_runs={REPEATS}"),
        )
        service.failures = [("POST", "/search", 400), ("POST", "/search", 500)]
        assert memeval(*words, check=False).returncode == 1, "two answers of 24 failed: invalid"
        statuses = Counter(record["status"] for record in records(tmp_path))
        assert statuses == {"ok": 4 * CASES * REPEATS - 2, "answer_failed": 2}
        errors = {record.get("error") for record in records(tmp_path)} - {None}
        assert {error.partition(" failed at ")[2][:16] for error in errors} == {
            "/search: HTTP 40",
            "/search: HTTP 50",
        }
        assert summary(tmp_path)["metrics"]["ingest_ready_s"] > 0
        assert len(waiting) == CASES * REPEATS, "a namespace for each case and repeat"

        asked = len(service.sent("search"))
        memeval(*words)

    assert {record["status"] for record in records(tmp_path)} == {"ok"}
    assert len(service.sent("search")) == asked + 2, "finished answers are not asked again"
    assert summary(tmp_path)["metrics"]["tokens/total"] is not None
    assert len(service.sent("reset")) >= 2 * CASES * REPEATS, "each case is forgotten"


@pytest.mark.slow
def test_case_that_cannot_be_ingested_becomes_a_status(
    memeval: Command, tmp_path: Path, service: ScriptedMemory
) -> None:
    service.failures = [("POST", "/ingest", 400)]
    words = ("system=http", f"system.base_url={service.address}", "system.max_retries=0")
    done = memeval(*words, "dataset.limit_questions=2", "tracking=none", check=False)
    assert done.returncode == 1, "a case without a memory has no score: invalid"
    failed = [record for record in records(tmp_path) if record["status"] == "ingest_failed"]
    assert len({record["case_id"] for record in failed}) == 1
    assert "failed at /ingest: HTTP 400: scripted 400" in failed[0]["error"]
    (note,) = [note for note in summary(tmp_path)["notes"] if "extractive reader" in str(note)]
    assert "by construction" not in str(note), "a service may reply differently in each repeat"


def test_a_memory_that_always_fails_stops_the_run(
    memeval: Command, tmp_path: Path, service: ScriptedMemory
) -> None:
    service.failures = [("POST", "/search", 400)] * 50
    words = ("system=http", f"system.base_url={service.address}", "system.max_retries=0")
    done = memeval(*words, "tracking=none", "stop_after_failures=5", check=False)
    assert done.returncode == 1
    assert (
        "stopped: the memory failed 5 times in a row, the last time: the memory serv"
        in done.stdout + done.stderr
    )
    assert "(stop_after_failures=5); the same command continues" in done.stdout + done.stderr
    assert len(service.sent("search")) < 30, "not all of the 115 questions"


@pytest.mark.slow
def test_a_run_in_which_nothing_is_found_is_invalid(
    memeval: Command, tmp_path: Path, service: ScriptedMemory
) -> None:
    service.change["search"] = lambda body, usual: {"results": [{"text": "No results found"}]}
    words = ("system=http", f"system.base_url={service.address}", "tracking=none")
    done = memeval(*words, "dataset.limit_questions=2", check=False)
    assert done.returncode == 1
    assert "no question got any context from the memory" in done.stdout + done.stderr
    assert summary(tmp_path)["valid"] is False
    report = next(tmp_path.glob("outputs/runs/*/report.md")).read_text(encoding="utf-8")
    assert "**INVALID.** No question got any context from the memory." in report


def test_a_plan_calls_no_service(memeval: Command, service: ScriptedMemory) -> None:
    words = ("system=http", f"system.base_url={service.address}", *FEW)
    done = memeval("plan", *words, "llm.base_url=http://127.0.0.1:9/v1")
    assert service.requests == []
    assert "\n12 calls (at most 12)" in done.stdout, "the reader's calls are counted"
