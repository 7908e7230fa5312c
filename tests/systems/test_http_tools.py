"""The tools that a memory behind HTTP serves, declared in YAML: calls over loopback, checks, and
faulty replies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from served_examples import TOOLS, WORD, ToolService, Under

from memeval.config.settings import read_settings
from memeval.errors import MemoryServiceError, UserError
from memeval.records import MemoryChunk
from memeval.systems.base import MemorySystem, SystemContext
from memeval.systems.external import remote
from memeval.systems.external.http import HttpMemory, HttpSettings
from memeval.systems.tools import Tool, ToolResult
from memeval.testing.checks import OF_TOOLS, outcome_of

PARTS = SystemContext(None, None, None, 3, 0, "case", None)  # type: ignore[arg-type]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolService]:
    monkeypatch.setattr(remote, "_answered", set())  # a port may be used again
    with ToolService() as serving:
        yield serving


def with_tools(
    service: ToolService, play: Callable[[dict[str, Tool], HttpMemory], Awaitable[Any]]
) -> Any:
    """The result of `play`, called with the tools of a memory that contains one chunk."""

    async def run() -> Any:
        given = {"base_url": service.address, "tools": TOOLS, "max_retries": 0, "patience_s": 0}
        memory = HttpMemory(read_settings(HttpSettings, given | {"dump_path": "/dump"}), PARTS)
        try:
            await memory.reset()
            await memory.ingest(MemoryChunk("c", "Ann: My puppy is Quill.", None, "s", ("t1",), ()))
            await memory.consolidate()
            return await play({tool.name: tool for tool in await memory.tools()}, memory)
        finally:
            await memory.close()

    return asyncio.run(run())


def test_a_call_is_posted_with_the_case_and_its_results_name_turns(service: ToolService) -> None:
    async def play(tools: dict[str, Tool], memory: HttpMemory) -> ToolResult:
        assert {name: tool.writes for name, tool in tools.items()} == {
            "find": False,
            "add_note": True,
        }
        assert tools["find"].parameters == WORD
        # The model can't choose the case.
        result: ToolResult = await tools["find"].call(word="puppy", namespace="another")
        return result

    result = with_tools(service, play)
    assert result.text == "Ann: My puppy is Quill."
    assert [chunk.turn_ids for chunk in result.retrieved] == [("t1",)]
    (sent,) = service.sent("tools/find")
    assert sent["word"] == "puppy"
    assert sent["namespace"].startswith("memeval-")


def test_written_note_is_found_and_listed(service: ToolService) -> None:
    async def play(tools: dict[str, Tool], memory: HttpMemory) -> Any:
        kept = await tools["add_note"].call(note="The teapot is green.")
        return kept, await tools["find"].call(word="teapot"), await memory.dump()

    kept, found, listed = with_tools(service, play)
    assert kept == ToolResult("kept")
    # A note names no turns; only turns that it quotes count.
    assert "The teapot is green." in found.text and found.retrieved is None
    assert listed == [{"kind": "stored", "text": "The teapot is green.", "turn_ids": []}]


@pytest.mark.parametrize(
    ("status", "reply", "shown", "is_error"),
    [
        (200, {"text": "Quill", "usage": []}, "Quill", False),
        (200, {"name": "Quill", "age": 3}, '{"name": "Quill", "age": 3}', False),
        (200, {"results": []}, "Nothing was found.", False),
        (200, {"results": [{"text": "No results found."}]}, "Nothing was found.", False),
        (200, {"results": "Quill"}, '{"results": "Quill"}', False),
        (200, {"text": 5}, "text must be a string, but is int", True),
        (200, {"error": "the index is locked"}, '{"error": "the index is locked"}', True),
        (400, {"error": "word is too short"}, "word is too short", True),
        (422, {"detail": "word is too short"}, "word is too short", True),
    ],
)
def test_reply_of_a_tool_is_shown_or_is_an_error(
    status: int, reply: Any, shown: str, is_error: bool, service: ToolService
) -> None:
    service.found = lambda _: (status, reply)

    async def play(tools: dict[str, Tool], memory: HttpMemory) -> Any:
        # No number of error replies counts as a service failure: the service is reachable.
        results = [await tools["find"].call(word="x") for _ in range(30)]
        return results[-1]

    result = with_tools(service, play)
    assert shown in result.text
    assert result.is_error == is_error


@pytest.mark.parametrize(
    ("reply", "retrieved"),
    [
        ({"error": ""}, ()),
        ({"text": ""}, ()),
        ({"text": None}, ()),
        ({"text": "No results found."}, ()),
        ({"results": [{"text": "", "turn_ids": None}], "usage": []}, ()),
        ({"text": "Quill"}, None),
    ],
)
def test_empty_reply_counts_as_nothing_found(
    reply: Any, retrieved: object, service: ToolService
) -> None:
    service.found = lambda _: (200, reply)

    async def play(tools: dict[str, Tool], memory: HttpMemory) -> Any:
        return await tools["find"].call(word="x")

    assert with_tools(service, play).retrieved == retrieved


@pytest.mark.parametrize(
    ("status", "reply", "message"),
    [
        (500, {"error": "out of memory"}, "failed at /tools/find: HTTP 500"),
        (404, {"error": "no such path"}, "failed at /tools/find: HTTP 404"),
        (200, ["Quill"], "failed at /tools/find"),
        (200, {"results": [{"text": 5}]}, "results[0].text: expected `str`"),
        (
            200,
            {"results": [{"text": "a", "turn_ids": ["t7"]}]},
            "memeval did not send for this case",
        ),
    ],
)
def test_failing_service_fails_the_question(
    status: int, reply: Any, message: str, service: ToolService
) -> None:
    service.found = lambda _: (status, reply)

    async def play(tools: dict[str, Tool], memory: HttpMemory) -> Any:
        with pytest.raises(MemoryServiceError) as raised:
            await tools["find"].call(word="x")
        return str(raised.value)

    assert message in with_tools(service, play)


def test_text_from_another_case_fails_the_question(service: ToolService) -> None:
    other = "Ann: We sailed to Bornholm with both of the ashwood canoes in July."

    async def play(tools: dict[str, Tool], memory: HttpMemory) -> Any:
        await tools["add_note"].call(note=other)
        assert other in (await tools["find"].call(word="Bornholm")).text
        memory._sent_texts.texts.clear()  # as if the text came from elsewhere
        with pytest.raises(MemoryServiceError, match="does not keep cases separate"):
            await tools["find"].call(word="Bornholm")

    with_tools(service, play)


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([{"name": "find"}], "system.tools: Object missing required field `description`"),
        (
            [{**TOOLS[0], "schema": {}}],
            "system.tools: Object contains unknown field `schema` - at `$[0]`",
        ),
        ([{**TOOLS[0], "path": "tools"}], "system.tools: Expected `str` matching regex"),
        ([{**TOOLS[0], "name": "find it"}], "at `$[0].name`"),
        ([TOOLS[0], TOOLS[0]], "two tools are named 'find'"),
        (
            [{**TOOLS[0], "parameters": {"type": "string"}}],
            "the parameters of 'find' must be the JSON schema of an object",
        ),
        (
            [{**TOOLS[0], "parameters": {"type": "object", "properties": {"namespace": {}}}}],
            "'namespace' of 'find' is the name of the case, which memeval sends",
        ),
    ],
)
def test_mistake_in_the_declaration_is_refused(tools: Any, message: str) -> None:
    with pytest.raises(UserError) as raised:
        read_settings(HttpSettings, {"base_url": "http://localhost:1", "tools": tools})
    assert message in raised.value.message


def test_reader_needs_a_read_only_tool() -> None:
    settings = read_settings(HttpSettings, {"base_url": "http://localhost:1", "tools": TOOLS[1:]})
    HttpMemory.check_use(settings, reader="direct", writer="tools")
    with pytest.raises(UserError, match="change the memory, but only the writer may"):
        HttpMemory.check_use(settings, reader="tools", writer="tools")


class Tooled(Under):
    def __init__(self, address: str, tools: Any) -> None:
        self.settings = read_settings(HttpSettings, {"base_url": address, "tools": tools})

    def build(self, parts: SystemContext) -> MemorySystem:
        return HttpMemory(self.settings, parts)


def outcomes(service: ToolService, tools: Any = TOOLS) -> list[str]:
    """Outcomes of the rules about tools."""
    under = Tooled(service.address, tools)
    return [asyncio.run(outcome_of(rule, under)).line for rule in OF_TOOLS]


def test_check_tries_the_tools(service: ToolService) -> None:
    assert outcomes(service) == [
        "ok              its tools find what was stored, in its own case",
        "ok              its tools find what they wrote",
    ]
    found, wrote = outcomes(service, tools=TOOLS[:1])
    assert found.startswith("ok")
    assert wrote.endswith("it has no tool that stores text")
    assert outcomes(service, tools=None)[0].startswith("not applicable")


def test_check_reports_what_tools_do_not_find(service: ToolService) -> None:
    service.found = lambda _: (200, {"results": []})
    found, wrote = outcomes(service)
    assert "no tool found any of 20 facts by its words: find" in found
    assert "what add_note wrote was not found by find" in wrote


def test_check_reports_that_a_tool_failed_to_write(service: ToolService) -> None:
    service.refused = (422, {"error": "at least 50 characters"})
    _, wrote = outcomes(service)
    assert "what add_note wrote was not found by find; add_note failed: " in wrote
    assert wrote.endswith("at least 50 characters")


def test_check_reports_what_tools_leak(service: ToolService) -> None:
    # A text without turn ids, the same for all cases.
    service.found = lambda _: (200, {"text": "We named the ferry Quorvex."})
    found, _ = outcomes(service)
    assert found.startswith("violated")
    assert "another case" in found
