"""A memory that is an MCP server: the example of the documentation over stdio and HTTP, and servers
in this process for what tools may return.
"""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from served_examples import EXAMPLES, Under, asked

from memeval.config.settings import read_settings
from memeval.errors import ModelError, UserError
from memeval.systems.base import NOISE, MemorySystem, SystemContext
from memeval.systems.external import mcp_session
from memeval.systems.external.mcp_memory import McpMemory, Settings
from memeval.systems.external.served import WITHOUT_IDS
from memeval.testing.contract import MemorySystemContract

STORE = {"text": "{text}", "user": "{namespace}", "turns": "{turn_ids}"}
SEARCH = {"query": "{query}", "user": "{namespace}", "limit": "{top_k}"}
EXAMPLE = {
    "store_tool": "add_memory",
    "store_arguments": STORE,
    "search_tool": "search_memory",
    "search_arguments": SEARCH,
    "results": "memories",
    "result_turn_ids": "turns",
}
BY_STDIO = {**EXAMPLE, "command": shlex.join([sys.executable, str(EXAMPLES / "mcp_server.py")])}


class Mcp(Under):
    """An MCP server under settings, driven as the checks do it."""

    def __init__(self, **settings: Any) -> None:
        self.settings = read_settings(Settings, settings)

    def build(self, parts: SystemContext) -> MemorySystem:
        return McpMemory(self.settings, parts)


# The example, as users start it


def test_the_example_answers_over_stdio() -> None:
    answer, ledger = asked(Mcp(**BY_STDIO))
    assert answer.retrieved is not None and "cedar" in answer.retrieved[0].text
    assert answer.ranking is not None and answer.ranking[0] == ("s2:3",)
    assert set(ledger.remarks) == {"service_usage"}


@pytest.mark.slow
class TestExample(MemorySystemContract):
    def build(self, parts: SystemContext) -> MemorySystem:
        return Mcp(**BY_STDIO).build(parts)


OVER_HTTP = """
import sys
sys.path.insert(0, sys.argv[1])
from mcp_server import server
server.settings.port = int(sys.argv[2])
server.run("streamable-http")
"""


@pytest.mark.slow
def test_the_example_answers_over_http() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    words = [sys.executable, "-c", OVER_HTTP, str(EXAMPLES), str(port)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            answer, _ = asked(Mcp(**EXAMPLE, url=f"http://127.0.0.1:{port}/mcp"))
        finally:
            process.kill()

    assert answer.retrieved is not None and "cedar" in answer.retrieved[0].text


def _wait_for(port: int) -> None:
    """Returns once somebody listens."""
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return

        time.sleep(0.05)

    raise AssertionError("the server did not start")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"command": "/no/such/server"}, "No such file or directory"),
        ({"command": f"{sys.executable} -c 'raise SystemExit(\"out of memory\")'"}, "out of memor"),
        ({"url": "http://127.0.0.1:9/mcp"}, "can't be reached"),
    ],
)
def test_a_server_that_is_not_there_is_the_users_mistake(
    settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(UserError) as raised:
        asked(Mcp(**EXAMPLE, **settings))
    assert told in raised.value.message and "\n" not in raised.value.message


CHATTY = """
import sys
print("Loading the model ...", flush=True)
sys.path.insert(0, sys.argv[1])
from mcp_server import server
server.run()
"""


@pytest.mark.slow
def test_what_a_server_prints_beside_its_replies_is_noted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "chatty.py"
    script.write_text(CHATTY, encoding="utf-8")
    command = shlex.join([sys.executable, str(script), str(EXAMPLES), "--token=secret"])
    memory = Mcp(**EXAMPLE, command=command)
    assert memory.settings.server().name == "the MCP server 'chatty.py'"

    answer, ledger = asked(memory)
    assert answer.retrieved
    assert ledger.remarks[NOISE] == "the server wrote 1 line that is not a reply"
    assert capfd.readouterr().err == ""


# What tools may return, from servers in this process


Search = Callable[[list[str]], Any]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[[Search], None]:
    """Makes sessions be with a server here, whose tool returns what a function makes of texts."""
    from mcp.server.fastmcp import FastMCP
    from mcp.shared.memory import create_connected_server_and_client_session

    def begin(search: Search) -> None:
        @asynccontextmanager
        async def connect(*_: Any) -> AsyncIterator[Any]:
            texts: list[str] = []
            made = FastMCP("memory", log_level="ERROR")

            @made.tool()
            def store(text: str) -> str:
                texts.append(text)
                return "stored"

            @made.tool(structured_output=False)
            def search_for(query: str, limit: int) -> Any:
                assert limit == 20
                return search(texts)

            async with create_connected_server_and_client_session(made._mcp_server) as client:
                yield client

        monkeypatch.setattr(mcp_session, "connect", connect)

    return begin


def here(**settings: Any) -> Mcp:
    tools = {
        "command": "served here",
        "store_tool": "store",
        "search_tool": "search_for",
        "search_arguments": {"query": "Find: {query}", "limit": "{top_k}"},
    }
    return Mcp(**{**tools, **settings})


def test_blocks_of_text_are_results_and_their_turns_are_found_in_them(
    serve: Callable[[Search], None],
) -> None:
    serve(lambda texts: [f"memory: {text}" for text in texts[6:8]])
    answer, ledger = asked(here())
    assert answer.ranking == (("s2:3",), ("s2:4",))
    assert WITHOUT_IDS not in ledger.remarks


def test_a_text_that_was_not_stored_has_no_turns(serve: Callable[[Search], None]) -> None:
    serve(lambda texts: ["Tomas builds kayaks from cedar."])
    answer, ledger = asked(here())
    assert answer.retrieved is not None and answer.retrieved[0].turn_ids == ()
    assert answer.ranking is None and WITHOUT_IDS in ledger.remarks


@pytest.mark.parametrize(
    ("results", "value"),
    [
        (".", [{"memory": "Kayaks, from cedar.", "rank": 0.5}]),
        ("found", {"found": [{"memory": "Kayaks, from cedar.", "rank": 0.5}]}),
        ("a.items", {"a": {"items": [{"memory": "Kayaks, from cedar.", "rank": 0.5}]}}),
    ],
)
def test_json_is_read_by_paths(serve: Callable[[Search], None], results: str, value: Any) -> None:
    serve(lambda texts: json.dumps(value))
    answer, _ = asked(here(results=results, result_text="memory", result_score="rank"))
    assert answer.retrieved is not None
    assert (answer.retrieved[0].text, answer.retrieved[0].score) == ("Kayaks, from cedar.", 0.5)


@pytest.mark.parametrize(
    ("returned", "settings", "told"),
    [
        ("no JSON", {"results": "found"}, "text that is not JSON"),
        ("{}", {"results": "found"}, "system.results=found leads to NoneType and not to a list"),
        ('{"found": [{}]}', {"results": "found"}, "results[0].text must be a string"),
    ],
)
def test_what_does_not_fit_is_one_line(
    serve: Callable[[Search], None], returned: str, settings: dict[str, Any], told: str
) -> None:
    serve(lambda texts: returned)
    with pytest.raises(ModelError) as raised:
        asked(here(**settings))
    assert told in str(raised.value) and "\n" not in str(raised.value)


def test_a_tool_that_fails_is_an_error(serve: Callable[[Search], None]) -> None:
    def fail(texts: list[str]) -> Any:
        raise ValueError("index is locked")

    serve(fail)
    with pytest.raises(ModelError, match="the tool 'search_for' of the MCP server 'served' failed"):
        asked(here())


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"store_tool": "stor"}, "unknown tool in system.store_tool 'stor'. Did you mean: store?"),
        (
            {"search_arguments": {"query": "{query}"}},
            "system.search_arguments lacks limit, which the tool 'search_for' needs",
        ),
    ],
)
def test_tools_are_compared_with_what_the_server_has(
    serve: Callable[[Search], None], settings: dict[str, Any], told: str
) -> None:
    serve(lambda texts: [])
    with pytest.raises(UserError) as raised:
        asked(here(**settings))
    assert told in raised.value.message


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "system=mcp needs either system.command or system.url"),
        ({"command": "a", "url": "http://localhost"}, "needs either system.command or system.url"),
        ({"command": "a"}, "system=mcp needs system.store_tool"),
        ({"command": "a", "store_tool": "b"}, "system=mcp needs system.search_tool"),
        (
            {"url": "http://localhost", "store_tool": "b", "search_tool": "c"},
            "they would share one memory",
        ),
        (
            {"store_arguments": {"text": "{txt}"}},
            "unknown field in system.store_arguments 'txt'. Did you mean: text?",
        ),
        ({"headers": {"X": "not a name"}}, "must be the name of an environment variable"),
    ],
)
def test_mistakes_in_settings_are_one_line(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as raised:
        McpMemory.resolve_settings(read_settings(Settings, settings), has_language_model=False)
    assert told in raised.value.message
