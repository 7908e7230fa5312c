"""Prepare, then run: memories are built once, found by every later run, and never used if they are
damaged or belong to another key.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest_pipeline import SMALL, Command, environment, records, without_times
from doubles.endpoint import ScriptedEndpoint
from forking import run_command_line

from memeval.text.names import digest_name

CHAT = "/chat/completions"
QUICK = ("dataset=demo", "dataset.limit_cases=1", "dataset.limit_questions=3", "tracking=none")


def memories(home: Path) -> list[Path]:
    """Folders of complete memories; the name of an incomplete one begins with a dot."""
    return sorted(
        path.parent for path in (home / "data" / "prepared").glob("*/*/[!.]*/memory.json")
    )


def thinking(endpoint: ScriptedEndpoint) -> tuple[str, ...]:
    return (
        *QUICK,
        "system=summarization",
        "compression_turn=20",
        "llm=openai",
        f"llm.base_url={endpoint.base_url}",
        "judge=keyword",
    )


@pytest.mark.slow
def test_run_finds_prepared_memories(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint(lambda body: "A short summary.") as endpoint:
        said = memeval("prepare", *thinking(endpoint))
        assert "1 built" in said.stdout
        thought = endpoint.count(CHAT)
        assert thought > 0
        assert "1 found" in memeval("prepare", *thinking(endpoint)).stdout
        assert endpoint.count(CHAT) == thought
        memeval(*thinking(endpoint))
        assert endpoint.count(CHAT) == thought + 3, "only the answers were asked for"


@pytest.mark.slow
def test_memory_folder_is_named_by_data_set_and_system_and_has_metadata(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint(lambda body: "A short summary.") as endpoint:
        memeval("prepare", *thinking(endpoint), "llm.model=small-1")

    (memory,) = memories(tmp_path)
    assert memory.parent.parent.name == "demo"
    system, _, key = memory.parent.name.rpartition("-")
    assert system == "summarization"
    meta = json.loads((memory / "meta.json").read_text(encoding="utf-8"))
    assert meta["key"] == key
    assert memory.name == digest_name(meta["case_id"])
    assert (meta["dataset"]["name"], meta["system"]["name"]) == ("demo", "summarization")
    assert (meta["compression_turn"], meta["llm"]["model"]) == (20, "small-1")
    assert "meta.json" in json.loads((memory / "memory.json").read_bytes())["files"]


@pytest.mark.slow
def test_sweep_over_top_k_uses_one_memory_without_any_cache(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint(lambda body: "A short summary.") as endpoint:
        memeval("prepare", *thinking(endpoint))
        thought = endpoint.count(CHAT)
        for cached in (tmp_path / "data" / "cache").glob("*.sqlite*"):
            cached.unlink()
        memeval("-m", *thinking(endpoint), "top_k=3,5,10,20")
        later = [str(body["messages"]) for _, body in endpoint.requests[thought:]]
    assert later
    assert all("Question:" in asked for asked in later), "only questions were asked"
    assert len(memories(tmp_path)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncated", "missing", "manifest"])
def test_a_damaged_memory_is_built_again(memeval: Command, tmp_path: Path, damage: str) -> None:
    memeval("prepare", *QUICK, "system=rag")
    memeval(*QUICK, "system=rag")
    before = without_times(records(tmp_path))
    (memory,) = memories(tmp_path)
    victim = next(
        path
        for path in sorted(memory.iterdir())
        if (path.name == "memory.json") == (damage == "manifest")
    )
    if damage == "missing":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
    assert "1 built" in memeval("prepare", *QUICK, "system=rag").stdout
    for folder in ("answers", "verdicts", "runs"):
        for path in (tmp_path / "outputs" / folder).rglob("*.json*"):
            path.unlink()
    memeval(*QUICK, "system=rag")
    assert without_times(records(tmp_path)) == before


@pytest.mark.slow
def test_settings_of_the_memory_change_it_but_top_k_and_judge_do_not(
    memeval: Command, tmp_path: Path
) -> None:
    for change in (
        (),
        ("granularity=session",),
        ("dataset.images=none",),
        ("compression_turn=middle",),
        ("system.chunk_size=300",),
    ):
        assert "1 built" in memeval("prepare", *QUICK, "system=rag", *change).stdout
    assert (
        "1 found" in memeval("prepare", *QUICK, "system=rag", "top_k=3", "judge=exact_match").stdout
    )
    assert len(memories(tmp_path)) == 5


@pytest.mark.slow
def test_prepare_continues_after_a_kill(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint(lambda body: "A short summary.", latency_s=0.1) as endpoint:
        cell = [word for word in thinking(endpoint) if "limit_cases" not in word] + [
            "dataset.limit_cases=3",
            "compression_turn=rolling",
            "llm.max_concurrency=1",
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "memeval", "prepare", *cell],
            env=environment(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while not memories(tmp_path) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = memeval("prepare", *cell)
        bodies = [json.dumps(body, sort_keys=True) for _, body in endpoint.requests]
    assert len(memories(tmp_path)) == 3
    assert "found" in done.stdout
    assert len(bodies) - len(set(bodies)) <= 1, "only the call under way may be asked twice"


def test_failed_case_is_named_and_tried_again_by_the_same_command(memeval: Command) -> None:
    from doubles.endpoint import Faults

    with ScriptedEndpoint(
        lambda body: "A short summary.", faults=Faults({"bad_request": 1.0})
    ) as endpoint:
        failed = memeval("prepare", *thinking(endpoint), check=False)
        assert failed.returncode == 1
        assert "demo-1" in failed.stderr
        assert "HTTP 400" in failed.stderr
        endpoint.faults = Faults()
        assert "1 built" in memeval("prepare", *thinking(endpoint)).stdout


def test_memories_of_checkpoints_are_prepared_for_a_run(memeval: Command) -> None:
    words = ("dataset=demo_lifecycle", "dataset.limit_cases=1", "system=bm25", "tracking=none")
    assert "memories: 4 built" in memeval("prepare", *words).stdout
    assert "memories: 4 found" in memeval("prepare", *words).stdout
    assert "prepare 4/4 (4 reused)" in memeval(*words).stderr


def test_memories_that_cannot_be_saved_say_why(tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "systems_example"
    words = ["prepare", *QUICK, "system.class=my_memory:Overlap"]
    done = run_command_line(words, env=environment(tmp_path), cwd=folder)
    assert "memories: 1 not saved (this system can't save its memories, so each" in done.stdout


def test_prepare_refuses_several_configurations(memeval: Command) -> None:
    refused = memeval("prepare", "-m", *SMALL, "system=rag,bm25", check=False)
    assert refused.returncode == 2
    assert "one configuration" in refused.stderr
