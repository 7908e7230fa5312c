"""Rules of the tools that a model is given under `reader=tools` and `writer=tools`."""

from collections.abc import Mapping, Sequence
from typing import Any

from memeval.llm.extractive.tools import fill_schema, stores_text
from memeval.pipeline.execute.tool_arguments import find_mistake
from memeval.pipeline.execute.tool_reader import as_function, open_tools
from memeval.pipeline.execute.tool_results import as_result
from memeval.records import EvalCase
from memeval.systems.base import MemorySystem
from memeval.systems.tools import Tool, ToolResult, search_tool
from memeval.testing.check_finding import FACTS, facts_case, sentence_of
from memeval.testing.under_test import (
    NotApplicableError,
    NotShownError,
    Opened,
    SystemUnderTest,
    exchanges,
    expect,
    quoted,
)
from memeval.text.shown import one_line

NOTHING = EvalCase("empty", (), ())


async def tools_find_what_was_stored(sut: SystemUnderTest) -> None:
    """Stored content is found by a tool that reads, but only in its own case."""
    await _tools(await sut.fill_system(case=NOTHING))
    memory, other = await sut.fill_system(case=facts_case()), await sut.fill_system()
    reading = _reading(await _tools(memory))
    for thing, name in FACTS.items():
        if not await _finds(memory, reading, thing, name):
            continue

        leaks = await _finds(other, _reading(await _tools(other)), thing, name)
        expect(not leaks, f"'{name}', which was said in another case, was found", "nothing")
        return

    raise NotShownError(
        f"no tool found any of {len(FACTS)} facts by its words: {_tool_names(reading)}"
    )


async def tools_find_what_they_wrote(sut: SystemUnderTest) -> None:
    """Content written by a tool is found by a tool that reads."""
    memory = await sut.fill_system(case=NOTHING)
    tools = await _tools(memory)
    # Tools that delete are not called.
    writing = [tool for tool in tools if tool.writes and stores_text(as_function(tool))]
    if not writing:
        raise NotApplicableError("it has no tool that stores text")

    (thing, name), *_ = FACTS.items()
    errors: list[str] = []
    for tool in writing:
        result = await _call(memory, tool, sentence_of(thing, name), thing)
        if result.is_error:
            errors.append(f"{tool.name} failed: {one_line(result.text, 200)}")

    reading = _reading(tools)
    if not await _finds(memory, reading, thing, name):
        missing = f"what {_tool_names(writing)} wrote was not found by {_tool_names(reading)}"
        raise NotShownError("; ".join((missing, *errors)))


async def _tools(memory: Opened) -> Sequence[Tool]:
    """The tools of a memory. Raises `NotApplicableError` for one without its own tools."""
    if type(memory.system).tools is MemorySystem.tools:
        raise NotApplicableError("it has no tools")

    tools = await open_tools(memory)
    if all(getattr(tool.call, "__module__", "") == search_tool.__module__ for tool in tools):
        raise NotApplicableError("its only tool is its search, which other rules check")

    return tools


def _reading(tools: Sequence[Tool]) -> Sequence[Tool]:
    return [tool for tool in tools if not tool.writes]


async def _finds(memory: Opened, tools: Sequence[Tool], thing: str, name: str) -> bool:
    """Whether any tool returns the name of a thing when it searches for the thing."""
    for tool in tools:
        # The word alone, and the sentence without the name: some search by words, some by meaning.
        for words in (thing, sentence_of(thing, "").rstrip(" .")):
            result = await _call(memory, tool, words, words)
            if name in result.text and not result.is_error:
                return True

    return False


async def _call(memory: Opened, tool: Tool, note: str, label: str) -> ToolResult:
    """Result of a tool for these words in the fewest arguments it takes."""
    arguments: Mapping[str, Any] = fill_schema(tool.parameters, note=note, label=label)
    exchanges.append(f"called: {tool.name} {one_line(arguments, 80)}")
    if (mistake := find_mistake(arguments, {**tool.parameters, "type": "object"})) is not None:
        return ToolResult(mistake, is_error=True)

    result = as_result(await memory.use(tool, arguments))
    exchanges.append(f"  got: {quoted([result.text])}")
    return result


def _tool_names(tools: Sequence[Tool]) -> str:
    return ", ".join(tool.name for tool in tools) or "no tool"
