"""A memory that is an MCP server: the documented example over stdio and HTTP, and servers in this
process for what tools may return.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from ports import free_port
from served_examples import EXAMPLES, Under, asked

from memeval.config.settings import read_settings
from memeval.errors import MemoryServiceError, ModelError, UserError
from memeval.records import ForgetRequest
from memeval.systems.base import NOISE, MemorySystem, SystemContext
from memeval.systems.external import mcp_session, program
from memeval.systems.external.discovery import option_of_command
from memeval.systems.external.mcp_memory import McpMemory, McpService
from memeval.systems.external.mcp_settings import McpSettings
from memeval.systems.external.mcp_transport import Server
from memeval.systems.external.served import WITHOUT_IDS
from memeval.systems.tools import Tool
from memeval.testing.checks import CHECKS, OF_TOOLS, outcome_of
from memeval.testing.contract import MemorySystemContract
from memeval.testing.sample import sample_case
from memeval.testing.under_test import SystemUnderTest, play

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
PARTS = SystemContext(None, None, None, 3, 0, "case", None)  # type: ignore[arg-type]
BY_STDIO = {**EXAMPLE, "command": shlex.join([sys.executable, str(EXAMPLES / "mcp_server.py")])}


class Mcp(Under):
    """An MCP server with the given settings, driven as the checks do it."""

    def __init__(self, **settings: Any) -> None:
        self.settings = read_settings(McpSettings, settings)

    def build(self, parts: SystemContext) -> MemorySystem:
        return McpMemory(self.settings, parts)


# The example, as users start it


@pytest.mark.slow
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
    port = free_port()
    words = [sys.executable, "-c", OVER_HTTP, str(EXAMPLES), str(port)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            answer, _ = asked(Mcp(**EXAMPLE, url=f"http://127.0.0.1:{port}/mcp"))
        finally:
            process.kill()

    assert answer.retrieved is not None and "cedar" in answer.retrieved[0].text


def _wait_for(port: int) -> None:
    """Returns once the port accepts connections."""
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return

        time.sleep(0.05)

    raise AssertionError("the server did not start")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"command": "/no/such/server"}, "No such file or directory"),
        ({"command": f"{sys.executable} -c 'raise SystemExit(\"out of memory\")'"}, "out of memor"),
        ({"url": "http://127.0.0.1:9/mcp"}, "can't be reached"),
    ],
)
def test_missing_server_is_a_user_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        asked(Mcp(**EXAMPLE, **settings))
    assert message in raised.value.message and "\n" not in raised.value.message
    is_started = "out of memor" in message
    assert any("system.environment" in hint for hint in raised.value.hints) == is_started


@pytest.mark.slow
def test_length_of_a_servers_line_is_limited(tmp_path: Path) -> None:
    script = tmp_path / "endless.sh"
    script.write_text("head -c 34000000 /dev/zero\nsleep 600\n", encoding="utf-8")
    with pytest.raises(UserError) as raised:
        asked(Mcp(**EXAMPLE, command=f"sh {script}", request_timeout_s=5))
    assert raised.value.message.endswith(
        "did not start a session within 5 s, but wrote a line of more than 32 MiB"
    )


CHATTY = """
import sys
print("Loading the model ...", flush=True)
sys.path.insert(0, sys.argv[1])
from mcp_server import server
server.run()
"""


@pytest.mark.slow
def test_other_output_of_a_server_is_noted(
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
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Connects sessions to a server in this process, whose search tool returns a function's result
    for the stored texts.

    Each session has its own texts, unless `kept` is given.
    """
    from mcp.server.fastmcp import FastMCP
    from mcp.shared.memory import create_connected_server_and_client_session

    def begin(search: Search, kept: list[str] | None = None) -> None:
        @asynccontextmanager
        async def connect(*_: Any) -> AsyncIterator[Any]:
            texts: list[str] = [] if kept is None else kept
            made = FastMCP("memory", log_level="ERROR")

            @made.tool()
            def store(text: str, at: str | None = None) -> str:
                if at is not None:
                    datetime.fromisoformat(at)

                texts.append(text)
                return "stored"

            @made.tool()
            def reset() -> str:
                return "emptied for one user"

            @made.tool(structured_output=False)
            def search_for(query: str, limit: int) -> Any:
                assert limit in (10, 20)
                return search(texts)

            @made.tool()
            def declared(query: str, limit: int) -> str:
                return str(search(texts))

            async with create_connected_server_and_client_session(made._mcp_server) as client:
                yield client

        monkeypatch.setattr(mcp_session, "connect", connect)

    return begin


def here(**settings: Any) -> Mcp:
    tools = {
        "command": "cat",
        "env": {"DATA": "{case_dir}"},
        "store_tool": "store",
        "search_tool": "search_for",
        "search_arguments": {"query": "Find: {query}", "limit": "{top_k}"},
    }
    return Mcp(**{**tools, **settings})


def test_text_blocks_are_results_and_name_turns_by_quotation(
    serve: Callable[..., None],
) -> None:
    serve(lambda texts: [f"memory: {text}" for text in texts[6:8]])
    answer, ledger = asked(here())
    assert answer.ranking == (("s2:3",), ("s2:4",))
    assert WITHOUT_IDS not in ledger.remarks


def test_one_text_block_is_split_into_results(serve: Callable[..., None]) -> None:
    serve(lambda texts: "Found:\n" + "\n---\n".join(text for text in texts if "cedar" in text))
    answer, _ = asked(here(result_split="(?m)^(Found:|---)$"))
    assert answer.retrieved is not None and len(answer.retrieved) == 2
    assert answer.ranking == (("s2:3",), ("s3:2",))

    with pytest.raises(UserError, match=r"system\.result_split is not a regular expression"):
        here(result_split="(")


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("removed", None),
        (
            "deleted",
            'system.items=deleted matches nothing in the reply, which is {"removed": 2, '
            '"of": null}',
        ),
        ("of", "system.items=of matches nothing"),
    ],
)
def test_wrong_path_of_items_is_an_error_and_not_an_unsupported_forget(
    serve: Callable[..., None], items: str, message: str | None
) -> None:
    serve(lambda texts: '{"removed": 2, "of": null}')
    found = {"query": "{about}", "limit": 10}
    under = here(forget_tool="search_for", forget_arguments=found, items=items)

    async def forget(sut: SystemUnderTest) -> None:
        system: Any = (await sut.fill_system()).system
        request = ForgetRequest(words="Forget it.", about="cedar")
        if message is None:
            assert await system.forget(request) == 2
            return

        with pytest.raises(MemoryServiceError, match=re.escape(message)):
            await system.forget(request)

    asyncio.run(play(forget, under))


def test_a_text_that_was_not_stored_has_no_turns(serve: Callable[..., None]) -> None:
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
def test_json_results_are_read_by_path(
    serve: Callable[..., None], results: str, value: Any
) -> None:
    serve(lambda texts: json.dumps(value))
    answer, _ = asked(here(results=results, result_text="memory", result_score="rank"))
    assert answer.retrieved is not None
    assert (answer.retrieved[0].text, answer.retrieved[0].score) == ("Kayaks, from cedar.", 0.5)


@pytest.mark.parametrize(
    ("returned", "found"),
    [('{"found": [{"text": "Kayaks."}]}', ["Kayaks."]), ("No results found.", [])],
)
def test_text_of_a_tool_that_declares_a_string_is_read_as_that_of_any_other(
    serve: Callable[..., None], returned: str, found: list[str]
) -> None:
    """The SDK sends it once more as `{"result": text}`."""
    serve(lambda texts: returned)
    answer, _ = asked(here(search_tool="declared", results="found"))
    assert [result.text for result in answer.retrieved or ()] == found


@pytest.mark.parametrize(
    ("returned", "settings", "message"),
    [
        ("no JSON", {"results": "found"}, "text that is not JSON (system.results): no JSON"),
        (
            '{"a": [1]}',
            {"results": "found"},
            'results=found must select a list in the reply, which is {"a": [1]}',
        ),
        ('{"found": [{}]}', {"results": "found"}, "results[0].text: expected `str`"),
    ],
)
def test_invalid_result_is_a_one_line_error(
    serve: Callable[..., None], returned: str, settings: dict[str, Any], message: str
) -> None:
    serve(lambda texts: returned)
    with pytest.raises(ModelError) as raised:
        asked(here(**settings))
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_failing_tool_is_an_error(serve: Callable[..., None]) -> None:
    def fail(texts: list[str]) -> Any:
        raise ValueError("index is locked")

    serve(fail)
    with pytest.raises(ModelError, match="the tool 'search_for' of the MCP server 'cat' failed"):
        asked(here())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"store_tool": "stor"}, "unknown tool in system.store_tool 'stor'. Did you mean: store?"),
        (
            {"search_arguments": {"query": "{query}"}},
            "system.search_arguments lacks limit, which the tool 'search_for' needs",
        ),
    ],
)
def test_configured_tools_are_checked_against_the_server(
    serve: Callable[..., None], settings: dict[str, Any], message: str
) -> None:
    serve(lambda texts: [])
    with pytest.raises(UserError) as raised:
        asked(here(**settings))
    assert message in raised.value.message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "system=mcp needs either system.command or system.url"),
        ({"command": "a", "url": "http://localhost"}, "needs either system.command or system.url"),
        (
            {"url": "http://localhost", "store_tool": "b", "search_tool": "c"},
            "to keep them separate, use",
        ),
        (
            {"store_arguments": {"text": "{txt}"}},
            "unknown field in system.store_arguments 'txt'. Did you mean: text?",
        ),
        ({"headers": {"X": "not a name"}}, "must be the name of an environment variable"),
    ],
)
def test_mistakes_in_settings_are_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        McpMemory.resolve_settings(read_settings(McpSettings, settings), has_language_model=False)
    assert message in raised.value.message


def test_tool_may_declare_null_required_arguments() -> None:
    async def check() -> None:
        session = mcp_session.McpSession(Server("the server", url="http://localhost:9"))
        session.tools = {"list": {"type": "object", "required": None}}
        session.check_tool("list", [], "reset")
        await session.close()

    asyncio.run(check())


# Servers that share data between cases


def test_server_that_stores_data_outside_its_home_is_refused(
    serve: Callable[..., None],
) -> None:
    serve(lambda texts: texts, kept=[])
    with pytest.raises(UserError) as raised:
        asked(here(env=None, command="cat -u"))
    assert "stores data outside its HOME" in raised.value.message
    assert "system.env={MEMORY_FILE: '{case_dir}/memory.json'}" in raised.value.hints[0]
    assert "system.command='SERVER --file {case_dir}/memory.json'" in raised.value.hints[1]
    assert "still has test sentences that begin with 'memeval: '" in raised.value.hints[-1]


def test_server_with_a_time_argument_is_probed_with_a_time(serve: Callable[..., None]) -> None:
    serve(lambda texts: texts, kept=[])
    dated = {"text": "{text}", "at": "{time}"}
    with pytest.raises(UserError, match="stores data outside its HOME"):
        asked(here(env=None, command="cat -n", store_arguments=dated))


def test_server_that_shares_nothing_is_probed_once_per_command(serve: Callable[..., None]) -> None:
    searches: list[int] = []

    def search(texts: list[str]) -> list[str]:
        searches.append(len(texts))
        return texts[:3]

    serve(search)
    for _ in range(2):
        assert asked(here(env=None, command="cat -v"))[0].retrieved
    assert searches == [0, 12, 12]


@pytest.mark.parametrize("reset_tool", ["reset", None])
def test_a_text_of_the_other_user_has_its_turns_in_a_store_of_two_users(
    serve: Callable[..., None], monkeypatch: pytest.MonkeyPatch, reset_tool: str | None
) -> None:
    """A shared server that leaks must be found out."""
    monkeypatch.setattr(McpService, "_check_isolated", passed)
    serve(lambda texts: texts)

    async def leak() -> list[Any]:
        service = McpService(here(reset_tool=reset_tool).settings, "case")
        chunk = {"text": "Ann: I sail.", "content": "I sail.", "turn_ids": ["s1:1"]}
        other = {"text": "Bob: I row.", "content": "I row.", "turn_ids": ["s1:2"]}
        await service.call("reset", {"namespace": "ann"})
        await service.call("ingest", {"namespace": "ann", "chunks": [chunk]})
        if reset_tool is not None:
            await service.call("reset", {"namespace": "bob"})

        await service.call("ingest", {"namespace": "bob", "chunks": [other]})
        asked = {"namespace": "bob", "query": "What does she do?", "top_k": 10}
        found = await service.call("search", asked)
        await service.close()
        return list(found["results"])

    assert [result["turn_ids"] for result in asyncio.run(leak())] == [["s1:1"], ["s1:2"]]


async def passed(_: McpService, own: str) -> None:
    """Skips the check that cases are kept apart."""


def test_a_result_that_was_stored_for_another_case_fails_the_question(
    serve: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Simulates a server that passed the isolation check, but shares its data later.
    monkeypatch.setattr(McpService, "_check_isolated", passed)
    serve(lambda texts: json.dumps({"found": texts[:2]}), kept=[])

    async def fill(sut: SystemUnderTest) -> None:
        await sut.fill_system(case=sample_case("first", ("s1",)))
        second = await sut.fill_system(case=sample_case("second", ("s2",)))
        with pytest.raises(MemoryServiceError) as raised:
            await sut.ask(second, "What?")

        errors.append(str(raised.value))

    errors: list[str] = []
    asyncio.run(play(fill, here(results="found")))
    assert "results[0] repeats word for word a text from another case: 'ilse i adopted" in errors[0]


# What servers say instead of results


@pytest.mark.slow
@pytest.mark.parametrize(
    ("returned", "settings"),
    [
        ("No results found.", {}),
        ("No results found.", {"results": "found"}),
        ('{"found": [], "message": "No memories yet"}', {"results": "found"}),
        ('{"entities": [], "relations": []}', {"results": "found"}),
        ("Nada", {"no_results": "^Nada$"}),
        ("Nada", {"no_results": "^Nada$", "results": "found"}),
    ],
)
def test_message_that_nothing_was_found_is_not_a_result(
    serve: Callable[..., None], returned: str, settings: dict[str, Any]
) -> None:
    serve(lambda texts: returned)
    assert asked(here(**settings))[0].retrieved == ()


@pytest.mark.parametrize(
    "returned",
    [
        "Error: database is locked",
        "MCP error -32602: Invalid params",
        "Failed to search memories: no model",
        '{"error": "no model"}',
        '{"status": "error", "message": "no model"}',
    ],
)
def test_an_error_sent_as_text_fails_the_question(
    serve: Callable[..., None], returned: str
) -> None:
    serve(lambda texts: returned)
    with pytest.raises(MemoryServiceError, match="the tool 'search_for' of the MCP server 'cat'"):
        asked(here())


def test_non_text_block_fails_the_question(serve: Callable[..., None]) -> None:
    from mcp.types import EmbeddedResource, ImageContent, TextContent, TextResourceContents

    text = TextContent(type="text", text="Kayaks, from cedar.")
    image = ImageContent(type="image", data="aGk=", mimeType="image/png")
    note = TextResourceContents(uri="memo://1", text="Bertil gets one.")  # type: ignore[arg-type]
    serve(lambda texts: [text, EmbeddedResource(type="resource", resource=note)])
    retrieved = asked(here())[0].retrieved or ()
    assert [chunk.text for chunk in retrieved] == ["Kayaks, from cedar.", "Bertil gets one."]

    serve(lambda texts: [text, image])
    with pytest.raises(MemoryServiceError, match=r"a block that is not text \(image\)"):
        asked(here())


# A real server: `.ci/run` shows how to install it


NPM = Path(os.environ.get("MEMEVAL_TEST_NPM", Path.home() / ".cache" / "memeval-npm"))
RECIPE = Path(__file__).parents[2] / "recipes" / "conf" / "system" / "server_memory.yaml"
SERVER = NPM / "node_modules" / "@modelcontextprotocol" / "server-memory" / "dist"
needs_server = pytest.mark.skipif(
    not (SERVER / "index.js").exists() or shutil.which("node") is None,
    reason="needs node and @modelcontextprotocol/server-memory: .ci/run installs it",
)


def real(folder: Path, **settings: Any) -> Mcp:
    """A copy of the server: by default it keeps its file next to its code."""
    code = folder / "dist"
    shutil.copytree(SERVER, code, ignore=shutil.ignore_patterns("*.jsonl"))
    shutil.copy(SERVER.parent / "package.json", folder)
    (folder / "node_modules").symlink_to(NPM / "node_modules")
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    tools = {key: recipe[key] for key in recipe if key not in ("defaults", "name", "env")}
    tools["command"] = f"node {code / 'index.js'}"
    return Mcp(**{**tools, **settings})


@pytest.mark.slow
@needs_server
def test_real_server_keeps_cases_apart_in_a_file_per_case(tmp_path: Path) -> None:
    shown = real(tmp_path, env=yaml.safe_load(RECIPE.read_text(encoding="utf-8"))["env"])
    essential = [rule for rule in CHECKS if rule.is_essential]
    outcomes = [asyncio.run(outcome_of(rule, shown)) for rule in essential]
    assert [outcome.state for outcome in outcomes] == ["ok"] * 3, outcomes


@needs_server
def test_real_server_with_one_file_for_all_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="stores data outside its HOME"):
        asked(real(tmp_path))


@needs_server
def test_real_server_with_a_wrong_variable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="stores data outside the case's folder"):
        asked(real(tmp_path, env={"MEMORY_PATH": "{case_dir}/memory.json"}))


@pytest.mark.slow
@needs_server
def test_real_server_is_recognised_by_its_command() -> None:
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    command = f"node {SERVER / 'index.js'}"
    option = asyncio.run(option_of_command(command, {}))
    names = ("store_tool", "search_tool", "results", "result_text", "dump_tool")
    assert {name: option[name] for name in names} == {name: recipe[name] for name in names}
    assert option["env"] == {"MEMORY_FILE_PATH": "{case_dir}/memory"}
    # The proposed option works.
    shown = Mcp(**{name: value for name, value in option.items() if name != "defaults"})
    assert [asyncio.run(outcome_of(rule, shown)).state for rule in OF_TOOLS] == ["ok", "ok"]


LONG = """
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    of = asked.get("params", {})
    text = "word " * 40_000 if of.get("name") == "long" else "short"
    reply = {"content": [{"type": "text", "text": text}]}
    if asked["method"] == "initialize":
        reply = {"protocolVersion": of["protocolVersion"], "capabilities": {"tools": {}}}
        reply["serverInfo"] = {"name": "long", "version": "1"}
    elif asked["method"] == "tools/list":
        reply = {"tools": [{"name": name, "inputSchema": {}} for name in ("long", "short")]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": reply}), flush=True)
"""


async def with_tools_of(
    folder: Path,
    source: str,
    use: Callable[..., Awaitable[list[Any]]],
    argument: str = "{case_dir}",
    **settings: Any,
) -> list[Any]:
    """The result of `use`, called with the tools of a server that runs this source."""
    script = folder / "server.py"
    script.write_text(source, encoding="utf-8")
    command = shlex.join([sys.executable, str(script), argument])
    memory = McpMemory(read_settings(McpSettings, {"command": command, **settings}), PARTS)
    try:
        await memory.reset()
        return await use(*await memory.tools())
    finally:
        await memory.close()


def test_result_that_is_too_long_fails_only_its_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(program, "LONGEST_LINE", 2**16)

    async def use(long: Tool, short: Tool) -> list[Any]:
        return [await long.call(), await short.call(), await long.call()]

    first, second, third = asyncio.run(with_tools_of(tmp_path, LONG, use, request_timeout_s=2))
    assert first.is_error
    assert first.text.endswith("did not reply within 2 s, but wrote a line of more than 0 MiB")
    assert second.text == "short"
    assert third.is_error


NOTES = """
import json, sys
from pathlib import Path

notes = Path(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    of = asked.get("params", {})
    if of.get("name") == "add":
        with notes.open("a") as lines:
            lines.write(of["arguments"]["text"])
    text = notes.read_text() if notes.exists() else ""
    reply = {"content": [{"type": "text", "text": text}]}
    if asked["method"] == "initialize":
        reply = {"protocolVersion": of["protocolVersion"], "capabilities": {"tools": {}}}
        reply["serverInfo"] = {"name": "notes", "version": "1"}
    elif asked["method"] == "tools/list":
        schema = {"properties": {"text": {"type": "string"}}}
        reply = {"tools": [{"name": name, "inputSchema": schema} for name in ("add", "find")]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": reply}), flush=True)
"""


def test_a_file_named_after_the_case_is_not_found_by_a_continued_run(tmp_path: Path) -> None:
    async def use(add: Tool, find: Tool) -> list[Any]:
        found = await find.call(text="")
        await add.call(text="Ilse adopted a greyhound.")
        return [found.text, (await find.call(text="")).text]

    names = {"argument": str(tmp_path / "{namespace}"), "search_tool": "find"}
    for tools in ({}, {}, {"store_tool": "add"}):
        told = asyncio.run(with_tools_of(tmp_path, NOTES, use, **names, **tools))
        assert told == ["", "Ilse adopted a greyhound."]


ODD = """
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    of, name = asked.get("params", {}), asked.get("params", {}).get("name")
    if name == "dies":
        sys.exit("segfault")
    reply = {"result": {"content": [{"type": "text", "text": "short"}]}}
    if asked["method"] == "initialize":
        agreed = {"protocolVersion": of["protocolVersion"], "capabilities": {"tools": {}}}
        reply = {"result": {**agreed, "serverInfo": {"name": "odd", "version": "1"}}}
    elif asked["method"] == "tools/list":
        names = ("busy", "lacks", "sound", "dies")
        reply = {"result": {"tools": [{"name": name, "inputSchema": {}} for name in names]}}
    elif name == "busy":
        reply = {"error": {"code": -32000, "message": "busy"}}
    elif name == "lacks":
        reply = {"result": {}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply}), flush=True)
"""


def test_only_a_server_that_has_ended_fails_the_question(tmp_path: Path) -> None:

    async def use(busy: Tool, lacks: Tool, sound: Tool, dies: Tool) -> list[Any]:
        results: list[Any] = [await tool.call() for tool in (busy, lacks, sound)]
        # The second call finds a server that has already ended.
        for tool in (dies, sound):
            with pytest.raises(MemoryServiceError) as caught:
                await tool.call()

            results.append(str(caught.value))

        return results

    busy, lacks, sound, first, second = asyncio.run(with_tools_of(tmp_path, ODD, use))
    assert busy.is_error and busy.text.endswith("failed: busy")
    assert lacks.is_error
    assert lacks.text.endswith("failed: the reply does not fit MCP: content: Field required")
    assert sound.text == "short"
    for message in (first, second):
        assert message.endswith(
            "the server ended with status 1 during this case; last line of stderr: segfault"
        )


MISREAD = """
import json, sys

sound = {"content": [{"type": "text", "text": "caf\\u00e9"}]}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    head = {"jsonrpc": "2.0", "id": asked["id"]}
    name = asked.get("params", {}).get("name")
    reply, encoding = {**head, "result": sound}, "utf-8"
    if asked["method"] == "initialize":
        agreed = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {}}
        reply["result"] = {**agreed, "serverInfo": {"name": "odd", "version": "1"}}
        encoding = ENCODING
    elif asked["method"] == "tools/list":
        names = ("logs", "array", "latin", "mark", "empty", "text")
        reply["result"] = {"tools": [{"name": name, "inputSchema": {}} for name in names]}
    elif name == "logs":
        # Not replies, although they name the call or are JSON.
        for noise in (f"called {line}", [1], {"id": asked["id"]}, {"heard": asked}, "[" * 10000):
            print(noise if isinstance(noise, str) else json.dumps(noise))
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "method": 5}))
    elif name == "array":
        reply = [reply]
    elif name == "latin":
        encoding = "latin-1"
    elif name == "mark":
        encoding = "utf-8-sig"
    elif name == "empty":
        reply = head
    elif name == "text":
        reply["result"] = "found"
    text = json.dumps(reply, ensure_ascii=False) + "\\n"
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(encoding))
    sys.stdout.flush()
"""


def test_a_call_whose_reply_is_not_json_rpc_names_the_line_that_the_server_wrote(
    tmp_path: Path,
) -> None:
    source = MISREAD.replace("ENCODING", "'utf-8'")

    async def call(number: int) -> Any:
        async def use(*tools: Tool) -> list[Any]:
            return [await tools[number].call()]

        folder = tmp_path / str(number)
        folder.mkdir()
        (result,) = await with_tools_of(folder, source, use, request_timeout_s=3)
        return result

    # Side by side, with a server each: a call without a reply takes its whole time limit.
    async def results() -> list[Any]:
        return await asyncio.gather(*map(call, range(6)))

    logs, *failed = asyncio.run(results())
    assert logs.text == "café" and not logs.is_error
    assert all(result.is_error for result in failed)
    message = "did not reply within 3 s, but wrote a line that is not JSON-RPC in UTF-8: "
    lines = [result.text.partition(message)[2] for result in failed]
    object_start = '{"jsonrpc": "2.0"'
    starts = [f"[{object_start}", object_start, f"\\ufeff{object_start}", *[object_start] * 2]
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(start)


def test_a_server_that_does_not_write_utf_8_is_refused(tmp_path: Path) -> None:
    async def open_session(encoding: str) -> None:
        folder = tmp_path / encoding
        folder.mkdir()
        source = MISREAD.replace("ENCODING", f"'{encoding}'")
        told = "session within 2 s, but wrote a line that is not JSON"
        with pytest.raises(UserError, match=told):
            await with_tools_of(folder, source, _no_calls, request_timeout_s=2)

    async def open_all() -> None:
        await asyncio.gather(*map(open_session, ("utf-16", "utf-16-le", "utf-16-be")))

    asyncio.run(open_all())


async def _no_calls(*_: Tool) -> list[Any]:
    return []


def test_server_that_ignores_the_case_folder_is_refused(
    serve: Callable[..., None],
) -> None:
    serve(lambda texts: texts, kept=[])
    with pytest.raises(UserError, match="stores data outside the case's folder"):
        asked(here(env={"UNUSED": "{case_dir}"}, command="cat -n"))
