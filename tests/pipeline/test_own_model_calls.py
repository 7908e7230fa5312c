"""A custom system that calls the model: the example of docs/adding_a_system.md, at an endpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import environment, records, summary
from doubles.endpoint import ScriptedEndpoint
from doubles.replies import scripted_reply
from forking import Done, run_command_line
from lone_runs import run_cell

from memeval.llm.contract import ChatPrompt
from memeval.pipeline.open.opening import open_cell
from memeval.records import Answer, Query, Role
from memeval.runs.compose.config import compose_config
from memeval.systems.controls.no_memory import NoMemory

EXAMPLE = Path(__file__).parents[1] / "systems_example"


def facts_of(body: Mapping[str, Any]) -> str:
    """The message itself as a fact if facts are requested, else a scripted reply."""
    first, last = body["messages"][0]["content"], body["messages"][-1]["content"]
    if not first.startswith("Reply with the facts"):
        return scripted_reply(body)

    return "Here they are: " + json.dumps({"facts": [last]})


def nothing_of_use(body: Mapping[str, Any]) -> str:
    return "I see no facts."


def a_number(body: Mapping[str, Any]) -> str:
    return '{"facts": 7}'


def play(home: Path, endpoint: ScriptedEndpoint, *more: str) -> Done:
    words = (
        "--config-dir my_conf system=facts llm=openai llm.model=scripted judge=keyword "
        "dataset.limit_cases=1 dataset.limit_questions=2 tracking=none"
    )
    address = f"llm.base_url={endpoint.base_url}"
    return run_command_line([*words.split(), address, *more], env=environment(home), cwd=EXAMPLE)


@pytest.mark.slow
def test_calls_of_the_example_are_metered_and_lose_nothing(tmp_path: Path) -> None:
    with ScriptedEndpoint(facts_of) as endpoint:
        done = play(tmp_path, endpoint)
        asked = sum(
            body["messages"][0]["content"].startswith("Reply with the facts")
            for _, body in endpoint.requests
        )

    assert done.returncode == 0, done.stdout + done.stderr
    metrics = summary(tmp_path)["metrics"]
    assert metrics["calls/ingest"] == asked > 100
    assert metrics["tokens/ingest/prompt"] > 0 and metrics["ingest_lost"] == 0
    assert metrics["recall_at_10"] is not None


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param(
            nothing_of_use,
            r"ingest lost \d+ of \d+ chunks \(100.0 %\), but max_ingest_loss allows only",
            marks=pytest.mark.slow,
        ),
        (a_number, r"my_facts.py:\d+ in ingest: TypeError: 'int' object is not iterable"),
    ],
)
def test_fault_of_the_example_is_a_status_with_its_location(
    tmp_path: Path, reply: Any, message: str
) -> None:
    with ScriptedEndpoint(reply) as endpoint:
        # This many useless replies would stop the run.
        assert play(tmp_path, endpoint, "stop_after_failures=null").returncode == 1

    for record in records(tmp_path):
        assert record["status"] == "ingest_failed"
        assert re.search(message, record["error"]), record["error"]


class OwnMessages(NoMemory):
    async def answer(self, query: Query) -> Answer:
        asked = {"role": "user", "content": [{"type": "text", "text": query.text}]}
        prompt = ChatPrompt((asked, {"role": "assistant", "tool_calls": []}))
        return Answer((await self.parts.model.complete(prompt, role=Role.ANSWER)).text)


def test_messages_need_not_have_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    words = (
        "system=no_memory system.class=test_own_model_calls:OwnMessages llm=openai judge=keyword "
        "llm.model=scripted dataset.limit_cases=1 dataset.limit_questions=1 tracking=none"
    )
    with ScriptedEndpoint(a_number) as endpoint:
        address = f"llm.base_url={endpoint.base_url}"
        run_cell(open_cell(compose_config([*words.split(), address]), ""))

    assert len(records(tmp_path)[0]["prompt"]) == 2
