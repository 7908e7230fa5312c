"""The tools of an MCP server that a model calls, with a server in this process and a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from memeval.config.settings import read_settings
from memeval.errors import MemoryServiceError, UserError
from memeval.llm.metering import Ledger, metered
from memeval.records import Query, Role
from memeval.systems.base import SystemContext
from memeval.systems.external import mcp_session
from memeval.systems.external.mcp_memory import McpMemory
from memeval.systems.external.mcp_session import ToolReply
from memeval.systems.external.mcp_settings import McpSettings
from memeval.systems.external.mcp_tools import as_result, changes_by_name
from memeval.systems.external.mcp_transport import Server
from memeval.systems.external.served import USAGE_UNKNOWN
from memeval.systems.tools import Tool, ToolResult
from systems.test_mcp_memory import RECIPE, needs_server, real

PARTS = SystemContext(None, None, None, 3, 0, "case", None)  # type: ignore[arg-type]
NAMED = {"command": "cat", "env": {"DATA": "{case_dir}"}}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connects sessions to a server in this process. Each has its own notes, but all sessions with
    a URL share theirs.
    """
    from mcp.server.fastmcp import FastMCP
    from mcp.shared.memory import create_connected_server_and_client_session
    from mcp.types import ToolAnnotations

    kept: list[tuple[str, str]] = []

    @asynccontextmanager
    async def connect(server: Server, *_: Any) -> AsyncIterator[Any]:
        made = FastMCP("memory", log_level="ERROR")
        notes = kept if server.url else []

        @made.tool()
        def save_note(text: str, user: str) -> str:
            notes.append((user, text))
            return "saved"

        @made.tool()
        def find(word: str, user: str) -> str:
            found = [text for owner, text in notes if owner == user and word in text]
            return "\n".join(found) or "No results found."

        @made.tool(annotations=ToolAnnotations(readOnlyHint=False))
        def touch(user: str) -> str:
            return "touched"

        @made.tool()
        def fails(user: str) -> str:
            raise ValueError("index is locked")

        @made.tool()
        def reports(user: str) -> str:
            return "Error: index is locked"

        @made.tool()
        def everything() -> list[list[str]]:
            return [list(note) for note in notes]

        async with create_connected_server_and_client_session(made._mcp_server) as client:
            yield client

    monkeypatch.setattr(mcp_session, "connect", connect)


def with_tools(
    play: Callable[[dict[str, Tool], McpMemory], Awaitable[Any]], **settings: Any
) -> Any:
    """The result of `play`, called with the tools of an empty memory by name."""

    async def run() -> Any:
        memory = McpMemory(read_settings(McpSettings, {**NAMED, **settings}), PARTS)
        try:
            await memory.reset()
            return await play({tool.name: tool for tool in await memory.tools()}, memory)
        finally:
            await memory.close()

    return asyncio.run(run())


async def names(tools: dict[str, Tool], _: McpMemory) -> dict[str, bool]:
    return {name: tool.writes for name, tool in tools.items()}


@pytest.mark.usefixtures("served")
def test_tools_are_listed_by_settings_and_marked_if_they_write() -> None:
    everything = with_tools(names)
    assert everything == {
        "save_note": True,
        "find": False,
        "touch": True,
        "fails": False,
        "reports": False,
        "everything": False,
    }
    assert with_tools(names, tools={"allow": ["find", "save_note"], "deny": ["find"]}) == {
        "save_note": True
    }
    written = with_tools(names, tools={"write": ["find"]})
    assert [name for name, writes in written.items() if writes] == ["find"]


@pytest.mark.usefixtures("served")
def test_namespace_argument_is_filled_in_and_hidden_from_the_model() -> None:
    async def play(tools: dict[str, Tool], memory: McpMemory) -> Any:
        assert "everything" not in tools  # it would expose all cases
        assert set(tools["find"].parameters["properties"]) == {"word"}
        assert tools["find"].parameters["required"] == ["word"]
        await tools["save_note"].call(text="My puppy is called Quill.")
        return await tools["find"].call(word="puppy")

    found = with_tools(play, namespace_argument="user")
    assert found == ToolResult("My puppy is called Quill.")


@pytest.mark.usefixtures("served")
def test_shared_server_gets_a_new_namespace_after_each_reset() -> None:
    case = {"user": "{namespace}"}
    shared = {
        "command": None,
        "env": None,
        "url": "http://localhost:1",
        "namespace_argument": "user",
        "store_tool": "save_note",
        "store_arguments": {"text": "{text}", **case},
        "search_tool": "find",
        "search_arguments": {"word": "{query}", **case},
    }

    async def play(tools: dict[str, Tool], memory: McpMemory) -> Any:
        before = await tools["find"].call(word="puppy")
        await tools["save_note"].call(text="My puppy is called Quill.")
        # A search of the memory itself finds what a model wrote.
        return before, await memory.recall(Query("puppy"), 3)

    for _ in range(2):  # the second time as a later run would
        before, found = with_tools(play, **shared)
        assert before.retrieved == ()
        assert [chunk.text for chunk in found] == ["My puppy is called Quill."]


@pytest.mark.usefixtures("served")
def test_results_and_errors_of_tool_calls() -> None:
    async def play(tools: dict[str, Tool], memory: McpMemory) -> list[ToolResult]:
        calls = [tools["find"].call(word="x", user="u")]
        calls += [tools[name].call(user="u") for name in ("fails", "reports")]
        calls.append(tools["find"].call())
        return [await call for call in calls]

    nothing, failed, reported, invalid = with_tools(play)
    assert nothing == ToolResult("No results found.", retrieved=())
    assert failed.is_error and "index is locked" in failed.text
    assert reported.is_error
    assert invalid.is_error


@pytest.mark.usefixtures("served")
def test_usage_of_tool_calls_is_unknown() -> None:
    """As in searches by memeval itself: MCP can't report usage."""

    async def play(tools: dict[str, Tool], memory: McpMemory) -> Any:
        with metered(Ledger()) as ledger:
            await tools["save_note"].call(text="My puppy is called Quill.", user="u")
            await tools["find"].call(word="puppy", user="u")
            ledger.scope = "the question's id"
            await tools["find"].call(word="puppy", user="u")
            await tools["fails"].call(user="u")
            await memory.dump()

        return ledger

    ledger = with_tools(play, dump_tool="everything")
    assert [usage.role for usage in ledger.usages] == [
        *(Role.INGEST, Role.INGEST),  # the writer searches, too
        *(Role.ANSWER, Role.ANSWER),
    ]
    assert {usage.prompt_tokens for usage in ledger.usages} == {None}
    assert ledger.remarks[USAGE_UNKNOWN] == "the service does not report tokens"


@pytest.mark.usefixtures("served")
def test_turn_ids_that_a_model_made_up_are_not_read() -> None:
    async def play(tools: dict[str, Tool], memory: McpMemory) -> Any:
        await tools["save_note"].call(text="My puppy is called Quill.", user="turn 7")
        return await memory.recall(Query("Quill"), 5)

    settings = {"search_tool": "everything", "search_arguments": {}, "results": "result"}
    (found,) = with_tools(play, **settings, result_text="1", result_turn_ids="0")
    assert (found.text, found.turn_ids) == ("My puppy is called Quill.", ())


def test_reply_with_only_images_counts_as_nothing_found() -> None:
    assert as_result(ToolReply((), None, ("image",)), None).retrieved == ()
    assert as_result(ToolReply(("a kayak",), None, ("image",)), None).retrieved is None
    assert as_result(ToolReply((), {"name": "Quill"}), None).retrieved is None


@pytest.mark.usefixtures("served")
def test_text_from_another_case_fails_the_question() -> None:
    other = "Ann: We sailed to Gotland with both of the cedar kayaks in May."

    async def play(tools: dict[str, Tool], memory: McpMemory) -> Any:
        await tools["save_note"].call(text=other, user="u")
        assert other in (await tools["find"].call(word="Gotland", user="u")).text
        # As if the text came from elsewhere.
        memory._sent_texts.texts.clear()
        with pytest.raises(MemoryServiceError, match="does not keep cases separate: the result of"):
            await tools["find"].call(word="Gotland", user="u")

    with_tools(play)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tools": {"allow": ["fnd"]}}, "unknown tool in system.tools.allow 'fnd'. Did you mean"),
        ({"namespace_argument": "case"}, "the MCP server has no usable tool with the argument"),
        ({"tools": {"allow": []}}, "the MCP server has no usable tool"),
    ],
)
@pytest.mark.usefixtures("served")
def test_selection_without_any_tool_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        with_tools(names, **settings)
    assert message in raised.value.message


IN_USER = {
    "command": "cat",
    "store_tool": "add",
    "store_arguments": {"text": "{text}", "user": "{namespace}"},
    "search_tool": "find",
    "search_arguments": {"query": "{query}", "user": "{namespace}"},
}


@pytest.mark.parametrize(
    ("settings", "use", "message"),
    [
        (NAMED, ("direct", "tools"), "needs system.search_tool"),
        (NAMED, ("tools", "chunks"), "needs system.store_tool"),
        (
            {"command": "cat"},
            ("tools", "tools"),
            "memeval can't tell whether cases are kept separate",
        ),
        ({"url": "http://localhost:1"}, ("tools", "tools"), "needs system.namespace_argument"),
        (IN_USER, ("tools", "chunks"), "system.store_arguments name the case in 'user'"),
        (IN_USER, ("direct", "tools"), "system.search_arguments name the case in 'user'"),
        (IN_USER, ("direct", "chunks"), None),
        ({**IN_USER, "namespace_argument": "user"}, ("tools", "chunks"), None),
        (NAMED, ("tools", "tools"), None),
    ],
)
def test_reader_and_writer_need_their_settings(
    settings: dict[str, Any], use: tuple[str, str], message: str | None
) -> None:
    read = read_settings(McpSettings, settings)
    if message is None:
        McpMemory.check_use(read, reader=use[0], writer=use[1])
        return

    with pytest.raises(UserError, match=message):
        McpMemory.check_use(read, reader=use[0], writer=use[1])


def test_missing_tool_also_names_the_setting_that_keeps_cases_separate() -> None:
    read = read_settings(McpSettings, {"command": "cat"})
    with pytest.raises(UserError, match=r"needs system\.store_tool") as raised:
        McpMemory.check_use(read, reader="tools", writer="chunks")

    assert "system.store_tool=... system.env={MEMORY_FILE:" in raised.value.hints[1]


@pytest.mark.slow
@needs_server
def test_real_server_has_reading_and_writing_tools(tmp_path: Path) -> None:
    shown = real(tmp_path, env=yaml.safe_load(RECIPE.read_text(encoding="utf-8"))["env"])

    async def run() -> None:
        memory = McpMemory(shown.settings, PARTS)
        try:
            await memory.reset()
            tools = {tool.name: tool for tool in await memory.tools()}
            reading = {name for name, tool in tools.items() if not tool.writes}
            assert reading == {"read_graph", "search_nodes", "open_nodes"}

            entity = {"name": "Ann", "entityType": "person", "observations": ["has a puppy"]}
            stored = await tools["create_entities"].call(entities=[entity])
            assert not stored.is_error
            assert "has a puppy" in (await tools["search_nodes"].call(query="puppy")).text
            assert (await tools["search_nodes"].call(query="zebra")).retrieved == ()
            assert (await tools["open_nodes"].call(names="Ann")).is_error
            (listed,) = await memory.dump() or ()
            assert "has a puppy" in listed["text"]
        finally:
            await memory.close()

    asyncio.run(run())


class Listing:
    """A session with a server that lists its tools one per page."""

    def __init__(self, *names: str, ends: bool = True) -> None:
        import mcp.types

        self._types = mcp.types
        self._names, self._ends = names, ends
        self.called: list[str] = []

    async def initialize(self) -> None: ...

    async def list_tools(self, cursor: str | None = None) -> Any:
        at = int(cursor or 0)
        is_last = self._ends and at + 1 == len(self._names)
        tool = self._types.Tool(name=self._names[at % len(self._names)], inputSchema={})
        next_cursor = None if is_last else str(at + 1)
        return self._types.ListToolsResult(tools=[tool], nextCursor=next_cursor)

    async def call_tool(self, name: str, _: Any) -> Any:
        self.called.append(name)
        return self._types.CallToolResult(content=[])


def listed(monkeypatch: pytest.MonkeyPatch, listing: Listing) -> None:
    @asynccontextmanager
    async def connect(*_: Any) -> AsyncIterator[Any]:
        yield listing

    monkeypatch.setattr(mcp_session, "connect", connect)


def test_tools_on_all_pages_get_valid_unique_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = "note_" * 20
    listing = Listing("memory.search", "memory search", "memory.search", long, f"{long}2", "")
    listed(monkeypatch, listing)

    async def play(tools: dict[str, Tool], _: McpMemory) -> list[str]:
        for tool in tools.values():
            await tool.call()
        return list(tools)

    # If two tools have the same name, the first is called.
    made = with_tools(play)
    assert made == ["memory_search", "memory_search_2", long[:64], f"{long[:62]}_2", "tool"]
    assert listing.called == ["memory.search", "memory search", long, f"{long}2", ""]


def test_endless_list_of_tools_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    listed(monkeypatch, Listing("find", ends=False))
    with pytest.raises(UserError, match="lists its tools on more than 100 pages"):
        with_tools(names)


@pytest.mark.parametrize(
    ("name", "writes"),
    [
        ("saveMemory", True),
        ("memory.store", True),
        ("MCPWriteNote", True),
        ("find_or_create", True),
        ("context_git_commit", True),
        ("context_session_start", True),
        ("context_restore_checkpoint", True),
        ("searchMemory", False),
        ("list_note_tags", False),
        ("open_nodes", False),
        ("getIndex", False),
        ("restful_lookup", False),
    ],
)
def test_tool_with_a_writing_verb_in_its_name_writes(name: str, writes: bool) -> None:
    assert changes_by_name(name) == writes
