"""`reader=tools` on the command line: offline, at an endpoint, and with a custom class."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from command_line import ROOT, SMALL, completed, memeval, runs
from doubles.endpoint import ScriptedEndpoint
from doubles.letta import LettaDouble
from systems.test_mcp_memory import NPM, needs_server

OWN = '''
from memeval.records import Answer
from memeval.systems.base import MemorySystem
from memeval.systems.tools import Tool, object_schema


class Notes(MemorySystem):
    """Keeps what was said as one text."""

    @classmethod
    def uses_llm_at_ingest(cls, settings):
        return False

    def reset(self):
        self.lines = []

    def ingest(self, chunk):
        self.lines.append(chunk.text)

    def answer(self, query):
        return Answer("unused")

    def tools(self):
        schema = object_schema(required=["word"], word={"type": "string"})
        return [Tool("find_notes", "Finds lines by a word.", schema, self.find)]

    def find(self, word):
        first = word.split()[0].lower()
        return "\\n".join(line for line in self.lines if first in line.lower())
'''


def rows(home: Path) -> list[Mapping[str, Any]]:
    """The records of the only run in a home."""
    (file,) = home.glob("outputs/runs/*/records.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["bm25", "files", "cogcanvas"])
def test_it_runs_offline(system: str, tmp_path: Path) -> None:
    completed(tmp_path, "reader=tools", f"system={system}", *SMALL)
    found = rows(tmp_path)
    assert len(found) == 3
    for row in found:
        assert row["status"] == "ok"
        assert 2 <= len(row["steps"]) <= 4
        assert "calls" not in row["steps"][-1]


@pytest.mark.slow
def test_custom_class_brings_its_own_tools(tmp_path: Path) -> None:
    (tmp_path / "my_notes.py").write_text(OWN, encoding="utf-8")
    completed(
        tmp_path,
        "reader=tools",
        "system.class=my_notes:Notes",
        *SMALL,
        PYTHONPATH=str(tmp_path),
    )
    names = {call["name"] for row in rows(tmp_path) for call in row["steps"][0]["calls"]}
    assert names == {"find_notes"}


def test_context_tokens_limit_all_tool_results_of_a_question(tmp_path: Path) -> None:
    completed(tmp_path, "reader=tools", "system=bm25", "context_tokens=120", *SMALL)
    found = rows(tmp_path)
    assert {row["status"] for row in found} == {"ok"}
    assert all(0 < row["context_tokens"] <= 120 for row in found)
    assert any(row["step_limit"] for row in found)


@pytest.mark.slow
def test_both_readers_share_one_memory_and_the_table_names_them(tmp_path: Path) -> None:
    done = completed(tmp_path, "-m", "reader=direct,tools", "system=bm25", *SMALL)
    assert "reader" in done.out
    assert "tools" in done.out
    assert len(list(tmp_path.glob("data/prepared/*/bm25-*"))) == 1


def test_plan_expects_the_two_requests_of_each_question(tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        words = (
            "reader=tools",
            "llm=openai",
            "llm.model=m",
            f"llm.base_url={endpoint.base_url}",
            "judge=keyword",
            *SMALL,
        )
        planned = completed(tmp_path, "plan", *words, "--json", OPENAI_API_KEY="sk-1")
        assert endpoint.count() == 0
        completed(tmp_path, *words, OPENAI_API_KEY="sk-1")
        assert endpoint.count("/chat/completions") == 6
        completed(tmp_path, *words, OPENAI_API_KEY="sk-1")
        assert endpoint.count("/chat/completions") == 6

    plan = json.loads(planned.out)
    assert (plan["calls"], plan["most_calls"]) == (6, 3 * 10)
    assert plan["most_usd"] is None
    first, second = (body for _, body in endpoint.requests[:2])
    assert first["tools"][0]["function"]["name"] == "search_memory"
    assert {message["role"] for body in (first, second) for message in body["messages"]} >= {
        "system",
        "user",
    }


def scripted_tools() -> ModuleType:
    """The scripted endpoint of the recipes."""
    path = ROOT / "recipes" / "scripted_tools.py"
    spec = importlib.util.spec_from_file_location("scripted_tools", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def at_recipes_endpoint(home: Path, *words: str) -> list[Mapping[str, Any]]:
    """The records of a run at that endpoint."""
    recipes = scripted_tools()
    with ScriptedEndpoint(recipes.reply, edit=recipes.call_tools) as endpoint:
        of_model = ("llm=openai", "llm.model=m", f"llm.base_url={endpoint.base_url}")
        completed(home, *words, *of_model, "judge=keyword", *SMALL, OPENAI_API_KEY="sk-1")

    return rows(home)


@pytest.mark.slow
def test_recipes_endpoint_behaves_like_the_offline_policy(tmp_path: Path) -> None:
    words = ("reader=tools", "writer=tools", "system=bm25")
    completed(tmp_path / "offline", *words, "judge=keyword", *SMALL)
    offline = rows(tmp_path / "offline")
    for row, other in zip(offline, at_recipes_endpoint(tmp_path / "at", *words), strict=True):
        assert row["hypothesis"] == other["hypothesis"]
        made = [[call["name"] for call in step.get("calls", ())] for step in row["steps"]]
        assert made == [[call["name"] for call in step.get("calls", ())] for step in other["steps"]]


def test_a_letta_server_is_read_and_written_by_tools(tmp_path: Path) -> None:
    with LettaDouble() as server:
        words = ("system=letta", f"system.base_url={server.address}", "reader=tools")
        completed(tmp_path, *words, "writer=tools", *SMALL)

    found = rows(tmp_path)
    assert {row["status"] for row in found} == {"ok"}
    assert {call["name"] for row in found for call in row["steps"][0]["calls"]} == {"search_memory"}
    (run,) = runs(tmp_path)
    assert run["metrics"]["write_recall"] > 0
    assert run["tags"]["own_prompt"] == "false"


@needs_server
def test_the_recipe_of_the_real_server_is_read_and_written_by_tools(tmp_path: Path) -> None:
    (tmp_path / "server-memory-env").mkdir()
    (tmp_path / "server-memory-env" / "node_modules").symlink_to(NPM / "node_modules")
    words = ("--config-dir", str(ROOT / "recipes" / "conf"), "system=server_memory")
    found = at_recipes_endpoint(tmp_path, *words, "reader=tools", "writer=tools")
    assert {row["status"] for row in found} == {"ok"}
    assert {call["name"] for row in found for call in row["steps"][0]["calls"]} == {"search_nodes"}
    assert any(call.get("turn_ids") for row in found for call in row["steps"][-2]["calls"])
    (run,) = runs(tmp_path)
    assert run["metrics"]["write_recall"] > 0
    assert run["name"].startswith("server_memory turn k=10 reader=tools writer=tools")


def test_a_model_that_calls_no_tool_is_named_as_the_cause(tmp_path: Path) -> None:
    with ScriptedEndpoint(lambda _: "7 May 2023") as endpoint:
        asked = ("reader=tools", "system=bm25", "llm=openai", f"llm.base_url={endpoint.base_url}")
        done = memeval(tmp_path, *asked, "judge=keyword", *SMALL)

    assert "the model called no tool" in " ".join(done.out.split())


def test_a_model_whose_calls_all_fail_is_named_as_the_cause(tmp_path: Path) -> None:
    function = {"name": "no_such_tool", "arguments": "{}"}
    wrong = {"tool_calls": [{"id": "1", "type": "function", "function": function}]}

    def reply(body: dict[str, Any]) -> Any:
        return "7 May 2023" if body["messages"][-1]["role"] == "tool" else wrong

    with ScriptedEndpoint(reply) as endpoint:
        asked = ("reader=tools", "system=bm25", "llm=openai", f"llm.base_url={endpoint.base_url}")
        done = memeval(tmp_path, *asked, "judge=keyword", *SMALL)

    assert "every call of a tool failed" in " ".join(done.out.split())


def test_model_without_tools_is_refused(tmp_path: Path) -> None:
    refusal = {"error": {"message": "m does not support tools"}}
    with ScriptedEndpoint(lambda _: refusal) as endpoint:
        ended = memeval(
            tmp_path,
            "reader=tools",
            "llm=openai",
            "llm.model=m",
            f"llm.base_url={endpoint.base_url}",
            *SMALL,
            OPENAI_API_KEY="sk-1",
        )

    assert ended.status == 2
    assert "memeval: m does not accept tools; use reader=direct" in ended.err.splitlines()
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("system=oracle",), "reader=tools: system=oracle has no tools"),
        (
            ("system=http", "system.base_url=http://localhost:1", "system.answers=true"),
            "reader=tools: system=http answers with its own prompt",
        ),
        (("stages=retrieve",), "needs answers"),
        (("reader.max_steps=0",), "reader.max_steps must be at least 1"),
        (("reader.max_result_tokens=1",), "reader.max_result_tokens must be at least 10"),
    ],
)
def test_systems_without_tools_are_refused(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    ended = memeval(tmp_path, "reader=tools", *words, *SMALL)
    assert ended.status == 2
    assert message in ended.message
