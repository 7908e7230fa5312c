"""Finds the contract of a memory at a URL, or of a program, by trying all contracts."""

import asyncio
import json
import re
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from memeval.config.settings import read_settings
from memeval.errors import MemevalError, ModelError, UserError, require_library
from memeval.llm.extractive.tools import mapping_of, names_in, without_references
from memeval.llm.keys import headers_of
from memeval.llm.transport import proxy_of
from memeval.systems.external import wire
from memeval.systems.external.command import CommandService, CommandSettings
from memeval.systems.external.contracts import CONTRACTS, OWN
from memeval.systems.external.data_paths import data_paths_of
from memeval.systems.external.http import NO_SERVICE, HttpService, HttpSettings
from memeval.systems.external.mcp_memory import content_of
from memeval.systems.external.mcp_session import McpSession, ToolReply
from memeval.systems.external.mcp_settings import McpSettings, fill_template, probe_chunk
from memeval.systems.external.mcp_transport import Server
from memeval.systems.external.program import CaseHome, ProgramSettings
from memeval.systems.external.service import Service, ToolError
from memeval.text.shown import one_line

Option = dict[str, Any]
"""An option of the config group `system`, as in YAML; `defaults` names the option it builds on."""

WAITING = {"request_timeout_s": 20.0}
"""Maximum wait for a reply from a server that may speak another protocol."""
_STORES = re.compile(r"add|store|save|creat|remember|write|insert|append|memori[sz]e", re.I)
_SEARCHES = re.compile(r"search|query|recall|find|retriev|lookup", re.I)
_NAMESPACE = ("namespace", "user_id", "user", "userid", "agent_id", "collection", "project")
STORED = {
    "{text}": (
        "text",
        "content",
        "memory",
        "message",
        "fact",
        "note",
        "observation",
        "data",
        "value",
        "body",
    ),
    "{namespace}": _NAMESPACE,
    "{turn_ids}": ("turn_ids", "turns"),
    "{time}": ("time", "timestamp", "date"),
    "{session_id}": ("session_id", "thread_id", "conversation_id"),
    "{id}": ("id", "key", "title", "topic", "name"),
}
"""Names of a storing tool's arguments, by the values that they get."""
SEARCHED = {
    "{query}": ("query", "q", "question", "search", "text", "keywords"),
    "{namespace}": _NAMESPACE,
    "{top_k}": ("limit", "top_k", "k", "n_results", "max_results", "count"),
}
"""Names of a searching tool's arguments, by the values that they get."""
MORE_STORED = 20
"""Number of further texts stored to check whether a tool lists all of them."""
LABELS = ("type", "entitytype", "kind", "category", "source")
LABEL = "memory"
"""Value for an argument of `LABELS` that a storing tool needs."""
_DUMPS = re.compile(
    r"(?:read_graph|dump|export|(?:list|get|read)_(?:all|memories|notes|facts))", re.I
)


NAME_TOOLS = (
    "name its tools:  check system=mcp system.store_tool=... system.search_tool=..., with "
    "system.command=... or system.url=..."
)


class UnrecognisedToolsError(UserError):
    """The service speaks a contract, but its use can't be derived from its replies."""


async def option_of_address(address: str, given: Mapping[str, Any]) -> Option:
    """The option for a service over HTTP; `given` contains its further settings, such as `headers`.

    Raises `UserError` that says how each contract failed, or that no proxy can be used.
    """
    proxy_of(address)
    values = {"base_url": address, **given}
    tries: dict[str, Coroutine[Any, Any, Option]] = {OWN: _http(values)}
    for contract in CONTRACTS:
        tries[contract] = _http({**values, "contract": contract})

    tries["mcp"] = _mcp({"url": address, **given})
    # A service may ignore members that it does not know, so memeval's own contract comes first.
    return await _first_of(tries, address, in_order=True)


async def option_of_command(command: str, given: Mapping[str, Any]) -> Option:
    """The option for a program. Raises `UserError` that says how each contract failed."""
    values = {"command": command, **given}
    read_settings(CommandSettings, values).check_program("for example:  check -- python memory.py")
    tries: dict[str, Coroutine[Any, Any, Option]] = {"json lines": _program(values)}
    settings = read_settings(ProgramSettings, values)
    variables = dict(given.get("env") or {})
    if not settings.names_case:
        variables = data_paths_of(settings.words("")) | variables
    if variables:
        values = {**values, "env": variables}

    tries["mcp"] = _mcp(values)
    # A server with another protocol may never reply, so no contract waits for another.
    return await _first_of(tries, f"'{one_line(command, 80)}'", in_order=False)


async def _first_of(
    tries: Mapping[str, Coroutine[Any, Any, Option]], name: str, *, in_order: bool
) -> Option:
    """The first option that is found; with `in_order`, only after all contracts before it failed.

    Raises `UserError` if none is found, and `UnrecognisedToolsError` immediately.
    """
    tasks = list(map(asyncio.ensure_future, tries.values()))
    try:
        for task in tasks if in_order else asyncio.as_completed(tasks):
            try:
                return await task
            except UnrecognisedToolsError:
                raise
            except MemevalError:
                continue
    finally:
        for task in tasks:
            task.cancel()

        # Awaits all tasks: asyncio reports exceptions that were never retrieved.
        ended = await asyncio.gather(*tasks, return_exceptions=True)

    reasons, hints = set(), []
    for contract, error in zip(tries, ended, strict=True):
        reason = one_line(str(error), 200)
        reasons.add(reason)
        hints.append(f"{contract}: {reason}")

    if len(reasons) == 1:
        raise UserError(reasons.pop())
    if all(" can't be reached: " in reason for reason in reasons):
        raise UserError(one_line(str(ended[0]), 200), NO_SERVICE)
    if f" within {WAITING['request_timeout_s']:g} s" in " ".join(hints):
        hints.append("if it starts slowly:  check system.request_timeout_s=120 ...")

    raise UserError(f"{name} did not reply properly in any protocol that check knows", *hints)


async def _http(values: Mapping[str, Any]) -> Option:
    once = {"max_retries": 0, "patience_s": 0}
    settings = read_settings(HttpSettings, {**WAITING, **values, **once})
    service = HttpService(settings)
    await _try(service, is_own=settings.contract == OWN)
    return {"defaults": ["http", "_self_"], **values}


async def _program(values: Mapping[str, Any]) -> Option:
    settings = read_settings(CommandSettings, {**WAITING, **values, "restarts": 0})
    await _try(CommandService(settings, _word()), is_own=True)
    return {"defaults": ["command", "_self_"], **values}


async def _try(service: Service, *, is_own: bool) -> None:
    """Tries a service with operations that only affect a new, unused namespace."""
    body = {"namespace": _word()}
    try:
        await service.call("reset", body)
        if is_own:
            wire.read_ready(await service.call("ready", body))
        else:
            await service.call("search", {**body, "query": body["namespace"], "top_k": 1})
    finally:
        await service.close()


async def _mcp(values: Mapping[str, Any]) -> Option:
    require_library("mcp", "needs memeval-bench[mcp]", "mcp")
    settings = read_settings(McpSettings, {**WAITING, **values})
    server = Server(
        "the MCP server",
        url=settings.url or "",
        headers=headers_of(settings.headers, "system.headers"),
        timeout_s=settings.request_timeout_s,
    )
    home = None
    if settings.command:
        home = CaseHome(settings, settings.words(""))
        home.renew(_word())
        server = replace(server, words=tuple(home.words()), variables=home.variables())

    try:
        session = await McpSession.open(server)
        try:
            option = {"defaults": ["mcp", "_self_"], **values, **_tools_of(session.tools)}
            option |= _case_of(option)
            return option | await _results_of(session, option, is_own=home is not None)
        except ToolError as error:
            # A server that starts slowly may need more time.
            if " did not reply " in str(error):
                raise

            raise UnrecognisedToolsError(f"it is an MCP server, but {error}", NAME_TOOLS) from error
        finally:
            await session.close()
    finally:
        if home is not None:
            home.remove()


def _tools_of(tools: Mapping[str, Mapping[str, Any]]) -> Option:
    """The settings for the tools that store and search, recognised by their names.

    Raises `UnrecognisedToolsError` if they can't be recognised.
    """
    option: Option = {}
    for role, pattern, fields in (("store", _STORES, STORED), ("search", _SEARCHES, SEARCHED)):
        first = next(iter(fields))
        for name, schema in tools.items():
            arguments = _arguments_of(without_references(schema), fields)
            if pattern.search(name) and arguments is not None and first in str(arguments):
                option |= {f"{role}_tool": name, f"{role}_arguments": arguments}
                break
        else:
            raise UnrecognisedToolsError(
                f"it is an MCP server, but memeval can't tell which of its tools is "
                f"system.{role}_tool: {one_line(', '.join(tools), 1000)}",
                NAME_TOOLS,
            )

    return option


def _case_of(option: Mapping[str, Any]) -> Option:
    """The setting for the argument that names the case, which a model can't know; else empty."""
    stored, searched = option["store_arguments"], option["search_arguments"]
    for name, value in stored.items():
        if value == searched.get(name) == "{namespace}":
            return {"namespace_argument": name}

    return {}


def _arguments_of(
    schema: Mapping[str, Any], fields: Mapping[str, Sequence[str]]
) -> dict[str, Any] | None:
    """Arguments for a tool; None if it needs a value that is not known."""
    arguments: dict[str, Any] = {}
    required = set(names_in(schema.get("required")))
    for name, kind in mapping_of(schema.get("properties")).items():
        part = mapping_of(kind)
        free = {field: names for field, names in fields.items() if field not in str(arguments)}
        value = _value_of(name.lower(), part, free, is_needed=name in required)
        if value is not None:
            arguments[name] = value

    return arguments if required <= set(arguments) else None


def _value_of(
    name: str, schema: Mapping[str, Any], fields: Mapping[str, Sequence[str]], *, is_needed: bool
) -> Any:
    """Value for an argument; None if no known value fits."""
    kind, items = schema.get("type"), mapping_of(schema.get("items"))
    has_objects = kind == "array" and items.get("type") == "object"
    if (kind == "object" or has_objects) and not is_needed:
        return None
    if kind == "object":
        return _arguments_of(schema, fields)
    if has_objects:
        inner = _arguments_of(items, fields)
        return inner and [inner]

    words = {name}
    if is_needed:
        words.add(name.removesuffix("s"))

    for field, names in fields.items():
        if not words.isdisjoint(names):
            return [field] if kind == "array" and field != "{turn_ids}" else field

    options = schema.get("enum")
    if is_needed and isinstance(options, list) and options:
        return options[0]

    return LABEL if is_needed and name in LABELS and kind == "string" else None


async def _results_of(session: McpSession, option: Option, *, is_own: bool) -> Option:
    """The settings for reading search results, found by storing and searching a made-up sentence.

    `is_own`: everything stored is gone with the session.
    """
    word = _word()
    text = f"memeval: {word}"
    chunk = probe_chunk(word, text)
    await session.call(option["store_tool"], fill_template(option["store_arguments"], chunk))
    asked = {"query": word, "asked_at": None, "top_k": 1, "namespace": word}
    arguments = fill_template(option["search_arguments"], asked)
    reply = await session.call(option["search_tool"], arguments)
    texts = [text]
    if is_own:
        for _ in range(MORE_STORED):
            other = _word()
            texts.append(f"memeval: {other}")
            more = {**chunk, "id": other, "text": texts[-1], "content": texts[-1]}
            await session.call(option["store_tool"], fill_template(option["store_arguments"], more))

    return _locate_results(reply, text, word) | await _dump_of(session, texts)


async def _dump_of(session: McpSession, texts: Sequence[str]) -> Option:
    """The setting for the tool that lists everything stored, if one does so without arguments."""
    for name, schema in session.tools.items():
        if _DUMPS.match(name) and not schema.get("required"):
            with suppress(ModelError):
                reply = await session.call(name, {})
                listed = f"{reply.texts} {reply.structured}"
                if all(text in listed for text in texts):
                    return {"dump_tool": name}

    return {}


def _locate_results(reply: ToolReply, text: str, word: str) -> Option:
    try:
        content = content_of(reply, "system.results")
    except ModelError:
        return {}

    for path, rows in _lists_in(content):
        for row in rows:
            if text in json.dumps(row):
                return _members_of(row, path, text, word)

    return {}


def _members_of(row: Any, path: str, text: str, turn: str) -> Option:
    """The settings for the members of a result that contain its text and its turns."""
    if not isinstance(row, Mapping):
        return {"results": path}

    option: Option = {}
    for name, value in row.items():
        if isinstance(value, str) and text in value:
            option.setdefault("result_text", name)
        elif value == [turn]:
            option.setdefault("result_turn_ids", name)
        elif isinstance(value, list) and value and text in str(value[0]):
            option.setdefault("result_text", f"{name}.0")

    return {"results": path, **option} if "result_text" in option else {}


def _lists_in(value: Any, path: str = "") -> list[tuple[str, list[Any]]]:
    """The outermost lists in JSON, with their paths."""
    if isinstance(value, list):
        return [(path or ".", value)]
    if not isinstance(value, Mapping):
        return []

    lists = []
    for name, member in value.items():
        inside = f"{path}.{name}" if path else str(name)
        lists += _lists_in(member, inside)

    return lists


def _word() -> str:
    return f"memeval-probe-{secrets.token_hex(6)}"
