"""The tools that a memory behind HTTP serves: `system.tools` in YAML, with `system=http`."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from memeval.errors import UserError
from memeval.systems.external import wire
from memeval.systems.external.mcp_tools import changes_by_name
from memeval.systems.external.server_replies import error_in, reports_no_results
from memeval.systems.tools import Tool, ToolResult, object_schema
from memeval.text.typed import convert

CASE = "namespace"
"""The member of each request that names the case."""
EXAMPLE = "for example:  tools: [{name: recall, description: Finds facts., path: /recall}]"


class DeclaredTool(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool as `system.tools` declares it."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]
    description: str
    path: Annotated[str, Meta(pattern=r"^/[A-Za-z0-9._~/-]*\Z")]
    """Path of the tool, below the base URL."""
    parameters: dict[str, Any] = field(default_factory=object_schema)
    """JSON schema of its arguments."""
    writes: bool | None = None
    """Whether it changes the memory; None: if its name has a verb such as `add` or `delete`."""

    @property
    def is_writing(self) -> bool:
        if self.writes is None:
            return changes_by_name(self.name)

        return self.writes


def read_declared(value: Any) -> tuple[DeclaredTool, ...]:
    """The tools of `system.tools`. Raises `UserError` for an invalid declaration."""
    try:
        tools = convert(value or [], tuple[DeclaredTool, ...])
    except msgspec.ValidationError as error:
        raise UserError(f"system.tools: {error}", EXAMPLE) from error

    names = [tool.name for tool in tools]
    for tool in tools:
        properties = tool.parameters.get("properties", {})
        if names.count(tool.name) > 1:
            raise UserError(f"system.tools: two tools are named '{tool.name}'")
        if tool.parameters.get("type") != "object" or not isinstance(properties, Mapping):
            raise UserError(
                f"system.tools: the parameters of '{tool.name}' must be the JSON schema of an "
                "object",
                "for example:  {type: object, properties: {query: {type: string}}}",
            )
        if CASE in properties:
            raise UserError(
                f"system.tools: '{CASE}' of '{tool.name}' is the name of the case, which "
                "memeval sends itself: leave it out of the parameters"
            )

    return tools


Use = Callable[[DeclaredTool, Mapping[str, Any]], Awaitable[ToolResult]]


def as_tool(declared: DeclaredTool, use: Use) -> Tool:
    async def call(**arguments: Any) -> ToolResult:
        return await use(declared, arguments)

    return Tool(
        name=declared.name,
        description=declared.description,
        parameters=declared.parameters,
        call=call,
        writes=declared.is_writing,
    )


def read_result(
    reply: wire.Json,
    read_search: Callable[[wire.Json], wire.SearchResults],
    nothing: str | None = None,
) -> ToolResult:
    """Result of a tool's reply: `results` as those of a search, `text`, `error`, or any other
    object, which the model is shown as JSON.

    `read_search` reads results, and its errors are raised; `nothing` is the pattern of the
    service's reply if nothing was found.
    """
    shown = {name: value for name, value in reply.items() if name != "usage"}
    if isinstance(shown.get("results"), list):
        search = read_search(shown)
        texts = "\n".join(chunk.text for chunk in search.results)
        chunks = None if search.without_ids else search.results
        return ToolResult(texts or "Nothing was found.", retrieved=chunks)

    text = shown.get("text")
    if list(shown) != ["text"] or text is None:
        text = json.dumps(shown, ensure_ascii=False)
    elif not isinstance(text, str):
        return ToolResult(f"text must be a string, but is {type(text).__name__}", is_error=True)

    if error_in(text) is not None:
        return ToolResult(text, is_error=True)
    if reports_no_results(text, nothing):
        return ToolResult(text, retrieved=())

    return ToolResult(text)
