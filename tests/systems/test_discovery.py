"""Detects which contract a URL or a program implements."""

from __future__ import annotations

import asyncio
import gc
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from doubles.rerank import RerankDouble
from served_examples import ScriptedMemory, example_server, program

from memeval.errors import UserError
from memeval.systems.external import discovery, mcp_session
from memeval.systems.external.discovery import option_of_address, option_of_command
from memeval.systems.external.mcp_session import ToolReply
from memeval.systems.external.service import ToolError


def of_command(command: str) -> dict[str, Any]:
    return asyncio.run(option_of_command(command, {}))


def test_example_server_uses_memevals_own_contract() -> None:
    with example_server() as address:
        option = asyncio.run(option_of_address(address, {}))
    assert option == {"defaults": ["http", "_self_"], "base_url": address}


def test_service_that_accepts_any_request_is_assigned_memevals_contract() -> None:
    with ScriptedMemory() as service:
        service.operate = lambda operation, body: {"ready": True, "results": [], "data": []}
        option = asyncio.run(option_of_address(service.address, {}))
    assert "contract" not in option


@pytest.mark.slow
def test_exceptions_of_failed_contracts_are_retrieved() -> None:
    unread = []

    async def discover(address: str) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: unread.append(context["message"]))
        await option_of_address(address, {})
        gc.collect()

    with example_server() as address:
        asyncio.run(discover(address))
    assert unread == []


def test_example_program_uses_json_lines() -> None:
    assert of_command(program()) == {"defaults": ["command", "_self_"], "command": program()}


def test_a_program_is_tried_as_an_mcp_server_only_with_the_library_and_it_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memeval.errors.find_spec", lambda name: None)
    with pytest.raises(UserError, match="did not reply properly in any protocol") as raised:
        of_command(f"{sys.executable} -c pass")

    assert raised.value.hints[1] == "mcp: needs memeval-bench[mcp], which is not installed"


@pytest.mark.slow
def test_example_mcp_server_is_recognised_by_its_tools() -> None:
    assert of_command(program("mcp_server.py")) == {
        "defaults": ["mcp", "_self_"],
        "command": program("mcp_server.py"),
        "store_tool": "add_memory",
        "store_arguments": {"text": "{text}", "user": "{namespace}", "turns": "{turn_ids}"},
        "search_tool": "search_memory",
        "search_arguments": {"query": "{query}", "user": "{namespace}", "limit": "{top_k}"},
        "namespace_argument": "user",
        "results": "memories",
        "result_text": "text",
        "result_turn_ids": "turns",
    }


def test_shared_mcp_server_gets_the_case_as_an_argument(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tools = {
        "save": {"properties": {"content": {}, "user_id": {}}, "required": ["content", "user_id"]},
        "find": {"properties": {"query": {}, "user_id": {}}, "required": ["query"]},
    }

    class Shared:
        def __init__(self) -> None:
            self.tools = tools

        async def call(self, *_: Any) -> ToolReply:
            return ToolReply(("stored",), None)

        async def close(self) -> None: ...

    async def connect(_: Any) -> Shared:
        return Shared()

    monkeypatch.setattr(mcp_session.McpSession, "open", connect)
    with RerankDouble() as service:
        option = asyncio.run(option_of_address(service.address, {}))
    assert option["namespace_argument"] == "user_id"


def test_store_tool_is_tried_with_a_real_timestamp(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dated:
        def __init__(self) -> None:
            self.tools = {
                "save": {"properties": {"text": {}, "timestamp": {}}},
                "find": {"properties": {"query": {}}},
            }

        async def call(self, tool: str, arguments: dict[str, Any]) -> ToolReply:
            if tool == "save":
                datetime.fromisoformat(arguments["timestamp"])
            return ToolReply(("stored",), None)

        async def close(self) -> None: ...

    async def connect(_: Any) -> Dated:
        return Dated()

    monkeypatch.setattr(mcp_session.McpSession, "open", connect)
    with RerankDouble() as service:
        option = asyncio.run(option_of_address(service.address, {}))
    assert option["store_arguments"] == {"text": "{text}", "timestamp": "{time}"}


def test_a_wrong_proxy_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://[::1")
    with pytest.raises(UserError, match=r"^the environment's proxy http://\[::1 is not a URL$"):
        asyncio.run(option_of_address("http://memory.invalid", {}))


def test_an_mcp_server_whose_tool_fails_is_not_said_to_speak_no_protocol(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Locked:
        def __init__(self) -> None:
            self.tools = {
                "save": {"properties": {"text": {}}},
                "find": {"properties": {"query": {}}},
            }

        async def call(self, *_: Any) -> ToolReply:
            raise ToolError("the tool 'save' of the MCP server failed: no account")

        async def close(self) -> None: ...

    async def connect(_: Any) -> Locked:
        return Locked()

    monkeypatch.setattr(mcp_session.McpSession, "open", connect)
    failed = "^it is an MCP server, but the tool 'save' of the MCP server failed: no account$"
    with RerankDouble() as service, pytest.raises(UserError, match=failed) as raised:
        asyncio.run(option_of_address(service.address, {}))
    assert "check system=mcp system.store_tool=..." in raised.value.hints[0]


SERVER = """
from mcp.server.fastmcp import FastMCP

server = FastMCP("memory", log_level="ERROR")
kept: list[str] = []


@server.tool()
def {store}(contents: list[str] = [], content: str = "") -> str:
    kept.append(content)
    return "stored"


@server.tool()
def recall(query: str) -> list[str]:
    return [text for text in kept if query in text]


server.run()
"""


@pytest.mark.slow
def test_mcp_server_with_a_list_of_texts_is_recognised(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER.format(store="remember"), encoding="utf-8")
    option = of_command(f"{sys.executable} {script}")
    assert option["store_arguments"] == {"content": "{text}"}
    assert option["search_arguments"] == {"query": "{query}"}
    assert option["results"] == "result"


GRAPH = """
import os
from pathlib import Path

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel

server = FastMCP("graph", log_level="ERROR")
file = Path(os.environ.get("GRAPH_FILE") or Path(__file__).with_name("graph.txt"))


class Entity(BaseModel):
    name: str
    entityType: str
    observations: list[str]


def lines() -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


@server.tool()
def delete_entities(names: list[str]) -> str:
    raise ValueError("nothing is to be deleted")


@server.tool()
def create_entities(entities: list[Entity]) -> str:
    file.write_text("\\n".join([*lines(), *(one.observations[0] for one in entities)]))
    return "created"


@server.tool()
def search_nodes(query: str) -> dict:
    found = [line for line in lines() if query in line]
    return {"entities": [{"name": "n", "observations": [line]} for line in found]}


@server.tool()
def read_graph() -> dict:
    return {"entities": lines()}


server.run()
"""


def test_mcp_server_of_entities_is_recognised_and_leaves_no_file(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(GRAPH, encoding="utf-8")
    assert of_command(f"{sys.executable} {script}") == {
        "defaults": ["mcp", "_self_"],
        "command": f"{sys.executable} {script}",
        "env": {"GRAPH_FILE": "{case_dir}/memory"},
        "store_tool": "create_entities",
        "store_arguments": {
            "entities": [{"name": "{id}", "entityType": "memory", "observations": ["{text}"]}]
        },
        "search_tool": "search_nodes",
        "search_arguments": {"query": "{query}"},
        "results": "entities",
        "result_text": "observations.0",
        "dump_tool": "read_graph",
    }
    # Probing left nothing in the user's own memory.
    assert not (tmp_path / "graph.txt").exists()


@pytest.mark.slow
def test_incomplete_listing_is_not_used_as_dump_tool(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(GRAPH.replace("lines()}", "lines()[-10:]}"), encoding="utf-8")
    assert "dump_tool" not in of_command(f"{sys.executable} {script}")


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ({"type": "string"}, {"topic": "{id}", "value": "{text}"}),
        ({"type": "string", "enum": ["note", "task"]}, None),
    ],
)
def test_required_arguments_of_a_tool_are_filled_in(
    kind: dict[str, Any], arguments: dict[str, str] | None
) -> None:
    properties = {"topic": {"type": "string"}, "value": {"type": "string"}, "source": kind}
    schema = {"properties": properties, "required": list(properties)}
    fill_template = discovery._arguments_of(schema, discovery.STORED)
    known = {"topic": "{id}", "value": "{text}", "source": "memory"}
    assert fill_template == (known if arguments else {**known, "source": "note"})


def test_a_storing_tool_that_calls_its_text_a_body_is_recognised() -> None:
    names = ("category", "name", "body")
    schema = {"properties": {name: {"type": "string"} for name in names}, "required": [*names]}
    search = {"properties": {"query": {"type": "string"}}, "required": ["query"]}
    option = discovery._tools_of({"memory_remember": schema, "memory_search": search})
    stored = {"category": "memory", "name": "{id}", "body": "{text}"}
    assert (option["store_tool"], option["store_arguments"]) == ("memory_remember", stored)


def test_tools_that_cannot_be_identified_are_listed(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER.format(store="frobnicate"), encoding="utf-8")
    with pytest.raises(UserError) as raised:
        of_command(f"{sys.executable} {script}")
    message = "memeval can't tell which of its tools is system.store_tool: frobnicate, recall"
    assert message in raised.value.message
    assert "check system=mcp system.store_tool=..." in raised.value.hints[0]


def test_program_without_any_known_protocol_is_refused() -> None:
    with pytest.raises(UserError, match="did not reply properly in any protocol that check knows"):
        asyncio.run(option_of_command(f"{sys.executable} -c pass", {"request_timeout_s": 5}))


def test_silent_program_is_waited_for_as_long_as_requested() -> None:
    command = f"{sys.executable} -c 'import sys; sys.stdin.read()'"
    with pytest.raises(UserError) as raised:
        asyncio.run(option_of_command(command, {"request_timeout_s": 0.5}))
    assert all("within 0.5 s" in hint for hint in raised.value.hints)


def test_limit_of_a_slow_start_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(discovery.WAITING, "request_timeout_s", 0.5)
    with pytest.raises(UserError) as raised:
        of_command(f"{sys.executable} -c 'import sys; sys.stdin.read()'")

    slow = "if it starts slowly:  check system.request_timeout_s=120 ..."
    assert [slow == hint for hint in raised.value.hints] == [False, False, True]
