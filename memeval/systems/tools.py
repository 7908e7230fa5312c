"""Tools of a memory that a model may call under `reader=tools` and `writer=tools`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from memeval.records import CorrectRequest, ForgetRequest, Query, Retrieved
from memeval.text.shown import counted

T = TypeVar("T")

MAX_FOUND = 50
"""Maximum chunks that one search returns."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Result of a tool that returns more than a string."""

    text: str
    """The result as the model sees it."""
    retrieved: tuple[Retrieved, ...] | None = None
    """The chunks that `text` shows, best first; None if the tool can't say."""
    is_error: bool = False
    """Whether `text` explains why the call has no result."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One function of a memory that a model may call."""

    name: str
    description: str
    """Description of its effect and its use, for the model."""
    parameters: Mapping[str, Any]
    """JSON schema of the arguments, an object."""
    call: Callable[..., Any]
    """Called with the arguments by name; plain or `async`. It returns a string, a `ToolResult`, or
    a JSON value. An exception becomes the result that the model sees, but a `WorldError` fails the
    question.
    """
    writes: bool = False
    """Whether it changes the memory: then only the writer gets it, as questions share a memory."""


def object_schema(required: Sequence[str] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object that has only these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


Search = Callable[[Query, int], Sequence[Retrieved] | Awaitable[Sequence[Retrieved]]]


def search_tool(search: Search, limit: int) -> Tool:
    """The standard tool of a memory that ranks chunks; `limit` of them are shown by default."""

    def search_memory(query: str, limit: int = limit) -> ToolResult | Awaitable[ToolResult]:
        return _apply(search(Query(query), limit), lambda results: _show(results, limit))

    return Tool(
        name="search_memory",
        description=(
            "Searches what was said in past conversations. Returns the entries that fit the query "
            "best, each with its date where it is known. Several short queries find more than one "
            "long one."
        ),
        parameters=object_schema(
            required=["query"],
            query={"type": "string", "description": "What to look for, in a few words."},
            limit={
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_FOUND,
                "description": f"Entries to return, {limit} by default.",
            },
        ),
        call=search_memory,
    )


Change = Callable[[Any], int | Awaitable[int | None] | None]
"""A memory's `forget` or `correct`."""
DELETE, UPDATE = "delete_memory", "update_memory"


def delete_tool(forget: Change) -> Tool:
    """The standard tool of a memory that can forget, for the writer."""

    def delete_memory(about: str) -> ToolResult | Awaitable[ToolResult]:
        if not about.strip():
            raise ValueError("about is empty, and would mean all that is stored")

        done = forget(ForgetRequest(words=about, about=about))
        return _apply(done, lambda items: _report_count(items, "Deleted"))

    return Tool(
        name=DELETE,
        description=(
            "Deletes the entries that hold every one of some words, for good. Use it when the user "
            "wants something forgotten."
        ),
        parameters=object_schema(
            required=["about"],
            about={"type": "string", "description": "Whom and what it is about, in a few words."},
        ),
        call=delete_memory,
        writes=True,
    )


def update_tool(correct: Change) -> Tool:
    """The standard tool of a memory that can correct, for the writer."""

    def update_memory(old: str, new: str) -> ToolResult | Awaitable[ToolResult]:
        if not old.strip():
            raise ValueError("old is empty")

        words = f"Not {old}, but {new}."
        done = correct(CorrectRequest(words=words, old=old, new=new))
        return _apply(done, lambda items: _report_count(items, "Changed"))

    return Tool(
        name=UPDATE,
        description=(
            "Puts a new value in place of an old one in every entry that holds it. Use it when the "
            "user takes something back as wrong."
        ),
        parameters=object_schema(
            required=["old", "new"],
            old={"type": "string", "description": "The value as it is stored."},
            new={"type": "string", "description": "The value that is true."},
        ),
        call=update_memory,
        writes=True,
    )


def _apply(
    value: T | Awaitable[T], read: Callable[[T], ToolResult]
) -> ToolResult | Awaitable[ToolResult]:
    """The result of `read` on the value that a memory returned, which may be awaitable."""

    async def read_awaited(awaited: Awaitable[T]) -> ToolResult:
        return read(await awaited)

    if isinstance(value, Awaitable):
        return read_awaited(value)

    return read(value)


def _report_count(items: int | None, verb: str) -> ToolResult:
    if items is None:
        return ToolResult("This memory can't do that.", is_error=True)

    return ToolResult(f"{verb}: {counted(items, 'entry', 'entries')}.")


def _show(results: Sequence[Retrieved], limit: int) -> ToolResult:
    shown = tuple(chunk for chunk in results[:limit] if chunk.text.strip())
    text = "\n".join(chunk.text for chunk in shown)
    return ToolResult(text=text or "Nothing was found.", retrieved=shown)
