"""The tools of an MCP server, as a model calls them under `reader=tools` and `writer=tools`."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memeval.errors import UserError, unknown
from memeval.systems.base import INGEST
from memeval.systems.external.mcp_session import ToolReply
from memeval.systems.external.server_replies import error_in, reports_no_results
from memeval.systems.tools import Tool, ToolResult

_WRITE = frozenset(
    """add append clear create delete edit forget import ingest insert link memorise memorize merge
    put record remember remove rename replace reset restore retain save set store update upsert
    write""".split()
)
_READ = frozenset(
    """count describe diff export fetch find get grep list look lookup open query read recall
    retrieve search show status view""".split()
)
_PERHAPS = frozenset(
    """apply archive branch cache capture changed checkpoint commit compress compact consolidate
    copy drop fork init initialize integrate journal learn log mark modify move note observe post
    prune purge push reassign register send start submit switch sync tag track upload watch
    """.split()
)
"""Words that mean a change, unless a verb of reading comes before: `list_note_tags`."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ODD = re.compile(r"[^A-Za-z0-9_-]")
LONGEST_NAME = 64
"""Maximum characters of a tool's name that endpoints accept."""

Use = Callable[[str, Mapping[str, Any], bool], Awaitable[ToolResult]]
"""Calls a tool by its name with its arguments; the last argument is whether the tool writes."""


@dataclass(frozen=True)
class ToolChoice:
    """Selection of the server's tools for a model."""

    allow: tuple[str, ...] | None = field(default=None, metadata=INGEST)
    """Names; None allows all."""
    deny: tuple[str, ...] = field(default=(), metadata=INGEST)
    """Names that are left out."""
    write: tuple[str, ...] | None = field(default=None, metadata=INGEST)
    """Names of the tools that change the memory, and so are only for the writer. None uses the
    server's annotation, else a verb in the name, such as `add` or `delete`.
    """


def tools_of(
    listed: Sequence[Any], choice: ToolChoice, namespace: tuple[str, str] | None, use: Use
) -> list[Tool]:
    """The tools of a server that are allowed.

    `listed` are those of `tools/list`. `namespace` is the case's argument and its value: the model
    does not see it, and tools without it are left out, since they reach all cases.

    Raises `UserError` for a name that the server does not have.
    """
    names = [tool.name for tool in listed]
    for option in ("allow", "deny", "write"):
        for name in getattr(choice, option) or ():
            if name not in names:
                raise unknown(f"tool in system.tools.{option}", name, names)

    # If two tools have the same name, a call reaches only one of them.
    by_name = {tool.name: tool for tool in reversed(listed)}
    kept: list[Tool] = []
    for name in dict.fromkeys(names):
        tool = by_name[name]
        is_allowed = name not in choice.deny and (choice.allow is None or name in choice.allow)
        if is_allowed and (namespace is None or namespace[0] in _properties(tool.inputSchema)):
            kept.append(_tool(tool, choice, namespace, use))

    if not kept:
        why = "" if namespace is None else f" with the argument '{namespace[0]}'"
        raise UserError(
            f"the MCP server has no usable tool{why} (system.tools, system.namespace_argument)",
            f"it has:  {', '.join(names)}",
        )

    accepted = accepted_names([tool.name for tool in kept])
    return [replace(tool, name=name) for tool, name in zip(kept, accepted, strict=True)]


def accepted_names(names: Sequence[str]) -> list[str]:
    """Unique names that every endpoint accepts: servers may name a tool `memory.search`."""
    taken: dict[str, None] = {}
    for name in names:
        plain = accepted = _ODD.sub("_", name)[:LONGEST_NAME] or "tool"
        number = 1
        while accepted in taken:
            number += 1
            accepted = f"{plain[: LONGEST_NAME - len(str(number)) - 1]}_{number}"

        taken[accepted] = None

    return list(taken)


def changes_by_name(name: str) -> bool:
    """Whether a tool changes something, judged by its name."""
    words = [word.lower() for word in _WORD.findall(name)]
    first = next((word for word in words if word in _READ | _PERHAPS), None)
    return not _WRITE.isdisjoint(words) or first in _PERHAPS


def _tool(listed: Any, choice: ToolChoice, namespace: tuple[str, str] | None, use: Use) -> Tool:
    writes = _writes(listed, choice)
    carried = {} if namespace is None else dict([namespace])

    async def call(**arguments: Any) -> ToolResult:
        return await use(listed.name, {**arguments, **carried}, writes)

    return Tool(
        name=listed.name,
        description=listed.description or "",
        parameters=_without(listed.inputSchema, carried),
        call=call,
        writes=writes,
    )


def _writes(listed: Any, choice: ToolChoice) -> bool:
    if choice.write is not None:
        return listed.name in choice.write

    only_reads = getattr(listed.annotations, "readOnlyHint", None)
    if only_reads is not None:
        return not only_reads

    return changes_by_name(listed.name)


def _properties(schema: Any) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _without(schema: Any, names: Mapping[str, str]) -> dict[str, Any]:
    shown = dict(schema) if isinstance(schema, Mapping) else {}
    # A dialect of JSON Schema, which some endpoints refuse.
    shown.pop("$schema", None)
    properties = _properties(schema).items()
    shown["properties"] = {name: value for name, value in properties if name not in names}
    if isinstance(required := shown.get("required"), list):
        shown["required"] = [name for name in required if name not in names]

    return shown


def as_result(reply: ToolReply, nothing: str | None) -> ToolResult:
    """Result of a tool as text; `nothing` is the pattern of a reply that found nothing.

    Many servers send errors as ordinary text.
    """
    parts = [*reply.texts, *(f"[{kind}: not shown]" for kind in reply.others)]
    text = "\n".join(parts)
    if not text and reply.structured is not None:
        text = json.dumps(reply.structured, ensure_ascii=False, default=str)

    if len(parts) == 1 and error_in(text) is not None:
        return ToolResult(text, is_error=True)

    # A placeholder such as `[image: not shown]` is not a text of the server.
    shown_text = "\n".join(reply.texts) if parts else text
    if reports_no_results(shown_text, nothing):
        return ToolResult(text, retrieved=())

    return ToolResult(text)
