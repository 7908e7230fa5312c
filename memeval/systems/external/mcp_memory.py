"""A memory that is an MCP server: its YAML names the tools that store and search."""

import asyncio
import json
import re
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from memeval.config.schema import TOOLS
from memeval.errors import MemoryServiceError, ModelError, UserError, require_library
from memeval.systems.base import DumpItem
from memeval.systems.external.mcp_session import McpSession, ToolReply
from memeval.systems.external.mcp_settings import (
    EXAMPLE,
    FIELDS,
    TEXTS,
    McpSettings,
    fill_template,
    probe_chunk,
)
from memeval.systems.external.mcp_tools import as_result, tools_of
from memeval.systems.external.program import CaseHome
from memeval.systems.external.served import ServedMemory, files_of
from memeval.systems.external.server_replies import error_in, is_empty_result, reports_no_results
from memeval.systems.external.service import Service, ToolError
from memeval.systems.external.wire import CHANGES
from memeval.systems.tools import Tool, ToolResult, search_tool
from memeval.text.redaction import strings_in
from memeval.text.shown import one_line

OWN_FILE = "system.env={MEMORY_FILE: '{case_dir}/memory.json'}"
"""A setting that keeps cases separate, for hints."""


class McpMemory(ServedMemory):
    """Stores chunks with one tool, call by call, and searches for questions with another. The
    cell's reader answers from the search results.

    Over stdio, each case has its own process; over HTTP, a namespace among the arguments.
    """

    settings_type = McpSettings

    @classmethod
    def resolve_settings(cls, settings: Any, *, has_language_model: bool) -> Any:
        settings.server()
        settings.check_program(EXAMPLE)
        require_library("mcp", "system=mcp needs the mcp library", "mcp")
        return settings

    @classmethod
    def check_use(cls, settings: Any, *, reader: str, writer: str) -> None:
        by_tools = TOOLS in (reader, writer)
        for option, is_used in (("store_tool", writer != TOOLS), ("search_tool", reader != TOOLS)):
            if is_used and not getattr(settings, option):
                hints = [EXAMPLE]
                if by_tools and not settings.names_case:
                    hints.append(f"or with a file for each case:  system.{option}=... {OWN_FILE}")

                raise UserError(f"system=mcp needs system.{option}", *hints)

        if by_tools and settings.url and not settings.namespace_argument:
            raise UserError(
                "all cases share the server at system.url: a model that calls its tools needs "
                "system.namespace_argument, the argument that carries the case"
            )

        if (reader == TOOLS) != (writer == TOOLS) and settings.namespace_argument is None:
            own = "store" if reader == TOOLS else "search"
            for name, value in settings.arguments(own).items():
                if value == "{namespace}":
                    # Otherwise the model would use a namespace other than memeval does.
                    raise UserError(
                        f"system.{own}_arguments name the case in '{one_line(name, 60)}', but a "
                        "model that calls the server's tools can't know the case",
                        f"use:  system.namespace_argument={one_line(name, 60)}",
                    )

        is_checked = settings.store_tool and settings.search_tool
        apart = settings.names_case or settings.namespace_argument or is_checked
        if by_tools and not apart:
            raise UserError(
                "system=mcp: memeval can't tell whether cases are kept separate",
                f"give each its own file:  {OWN_FILE}",
                "or let memeval check it:  system.store_tool=... system.search_tool=...",
            )

    @classmethod
    def files(cls, settings: Any) -> tuple[Path, ...]:
        return files_of(settings.words(EXAMPLE))

    @classmethod
    def knows_users(cls, settings: Any) -> bool:
        return bool(settings.has_namespaces)

    async def begin_namespace(self, namespace: str) -> None:
        # Without a reset tool, this reset would end the server, with the first user's memory.
        if self.settings.reset_tool is not None:
            await super().begin_namespace(namespace)

    async def tools(self) -> Sequence[Tool]:
        service = self._service
        if not isinstance(service, McpService):
            return (search_tool(self.recall, self.parts.top_k),)  # in an estimate

        carried = None
        if (name := self.settings.namespace_argument) is not None:
            carried = (name, service.name_of(self.namespace))

        return tools_of(service.session.listed, self.settings.tools, carried, self._use)

    async def _use(self, tool: str, arguments: Mapping[str, Any], writes: bool) -> ToolResult:
        """The result of one of the server's own tools, as a model calls it."""
        if writes:
            for text in strings_in(arguments):
                self._sent_texts.add(text, text)

        # For failed calls, too: MCP never reports the tokens of a server's own models.
        self._count({})
        return await self._result_of(tool, arguments)

    async def _result_of(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        assert isinstance(self._service, McpService), "it has listed them"
        try:
            reply = await self._service.session.call(tool, arguments)
        except ToolError as error:
            return ToolResult(str(error), is_error=True)
        except ModelError as error:
            raise MemoryServiceError(str(error)) from error

        result = as_result(reply, self.settings.no_results)
        self._check_separate(result.text, f"the result of '{one_line(tool, 60)}'")
        return result

    async def dump(self) -> list[DumpItem] | None:
        """All that the server has stored, as its tool returns it."""
        tool = self.settings.dump_tool
        if tool is None or not isinstance(self._service, McpService):
            return None

        result = await self._result_of(tool, {})
        return [{"kind": "stored", "text": result.text}]

    def open_service(self) -> Service:
        return McpService(self.settings, self.namespace)


class McpService(Service):
    """Turns the operations of one case into calls of tools."""

    def __init__(self, settings: McpSettings, namespace: str) -> None:
        self._settings, self._server = settings, settings.server()
        self.name, self._namespace = self._server.name, namespace
        self._home = CaseHome(settings, self._server.words)
        self._session: McpSession | None = None
        self._stored: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        """Chunks by namespace: two users may share the server."""
        self._suffix = ""

    async def call(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if operation == "reset":
            await self._reset(body)
            return {}
        if operation == "ready":
            return {"ready": True}

        namespace = self.name_of(body["namespace"])
        if operation == "ingest":
            for chunk in body["chunks"]:
                await self._call("store", {**chunk, "namespace": namespace})
                self._stored[body["namespace"]].append(chunk)

            return {}

        if operation in CHANGES:
            reply = await self._call(operation, {**body, "namespace": namespace})
            return {"items": self._items(reply)}

        reply = await self._call("search", {**body, "namespace": namespace})
        return {"results": self._results(reply)}

    def name_of(self, namespace: str) -> str:
        """The name of a namespace at the server: a new name after each reset if the server has no
        reset tool.
        """
        return namespace + self._suffix

    @property
    def session(self) -> McpSession:
        assert self._session is not None, "reset comes first"
        return self._session

    async def _reset(self, body: Mapping[str, Any]) -> None:
        self._stored.pop(body["namespace"], None)
        if self._settings.reset_tool is None:
            self._stored.clear()
            # Random, because the server may still have the same case from an earlier run.
            self._suffix = f"-{secrets.token_hex(4)}"

        # The process of a command is ended, and its folder emptied. A server at a URL gets another
        # namespace instead (`name_of`).
        if self._settings.command and self._settings.reset_tool is None:
            await self.close()
        if self._session is None:
            namespace = self.name_of(self._namespace)
            await self._check_isolated(namespace)
            await self._open(namespace)
        if self._settings.reset_tool is not None:
            await self._call("reset", {"namespace": self.name_of(body["namespace"])})

    async def _open(self, namespace: str) -> None:
        settings = self._settings
        server = self._server
        if settings.command:
            self._home.renew(namespace)
            words, variables = tuple(self._home.words()), self._home.variables()
            server = replace(server, words=words, variables=variables)

        self._session = session = await McpSession.open(server)
        for option in FIELDS:
            tool = getattr(settings, f"{option}_tool")
            if tool is not None:
                session.check_tool(tool, list(settings.arguments(option)), option)

    async def _call(self, option: str, values: Mapping[str, Any]) -> ToolReply:
        tool = str(getattr(self._settings, f"{option}_tool"))
        arguments = fill_template(self._settings.arguments(option), values)
        reply = await self.session.call(tool, arguments)
        # Most servers report errors as ordinary text. A text that was stored is not an error.
        error = error_in(reply.texts[0]) if len(reply.texts) == 1 else None
        if error and self._turns_in(reply.texts[0]) is None:
            raise ModelError(
                f"the tool '{one_line(tool, 60)}' of {self.name} failed: {one_line(error, 300)}"
            )

        return reply

    async def _check_isolated(self, namespace: str) -> None:
        """Raises `UserError` if the process of this case, named `namespace`, would find the data of
        another. Checked once per command, even if the server is given a folder: it may not use it.
        """
        settings, key = self._settings, repr((self._settings.command, self._settings.env))
        if not settings.command or settings.has_namespaces:
            return
        if settings.store_tool is None or settings.search_tool is None:
            return  # no tools to check it with: see `McpMemory.check_use`

        lock = _CHECKING.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            if key in _isolated:
                return

            word, kept = f"probe{secrets.token_hex(6)}", secrets.token_hex(6)
            asked = {"query": word, "asked_at": None, "top_k": 10, "namespace": word}
            try:
                await self._open(word)
                await self._call("store", probe_chunk(word, f"memeval: {word} {kept}"))
                await self.close()
                await self._open(namespace)
                reply = await self._call("search", asked)
            except ModelError:
                reply = ToolReply((), None)  # the case's own calls report mistakes
            finally:
                await self.close()

            if kept in f"{reply.texts} {reply.structured}":
                place = "the case's folder" if settings.names_case else "its HOME"
                raise UserError(
                    f"{self.name} stores data outside {place}, where the next case would find it",
                    "give each case its own file, with the variable that the server reads:  "
                    f"{OWN_FILE}",
                    "or with an option:  system.command='SERVER --file {case_dir}/memory.json'",
                    "or, for a server that has namespaces, {namespace} in store_arguments and "
                    "search_arguments",
                    "its memory still has test sentences that begin with 'memeval: '",
                )

            _isolated.add(key)

    def _items(self, reply: ToolReply) -> Any:
        """The count of removed or changed items in a reply."""
        path = self._settings.items
        if path is None:
            return 1

        content = content_of(reply, "system.items")
        items = _at(content, path)
        # None would mean that the server does not support the operation.
        if items is None:
            raise ModelError(
                f"{self.name}: system.items={path} matches nothing in the reply, which is "
                f"{_shown(content)}"
            )

        return items

    def _results(self, reply: ToolReply) -> list[dict[str, Any]]:
        """The results as a memory behind HTTP would send them."""
        if reply.others:
            raise ModelError(
                f"{self.name}: the result has a block that is not text "
                f"({', '.join(sorted(set(reply.others)))}), which can't be shown to the reader"
            )

        return list(map(self._result, self._rows(reply)))

    def _rows(self, reply: ToolReply) -> list[Any]:
        """Results of a reply; an empty list for a reply that reports no results."""
        if self._settings.results == TEXTS:
            return self._texts(reply.texts)

        nothing = self._settings.no_results
        if reply.structured is None and reports_no_results("".join(reply.texts), nothing):
            return []

        content = content_of(reply, "system.results")
        rows = _at(content, self._settings.results)
        if rows is None and is_empty_result(content):
            return []
        if not isinstance(rows, list):
            raise ModelError(
                f"{self.name}: system.results={self._settings.results} must select a list in the "
                f"reply, which is {_shown(content)}"
            )

        return rows

    def _texts(self, blocks: Sequence[str]) -> list[str]:
        pattern = self._settings.result_split
        if pattern is None:
            return list(blocks)

        texts: list[str] = []
        for block in blocks:
            # Not re.split, which also returns the groups of the pattern.
            texts += re.sub(pattern, "\0", block).split("\0")

        return list(filter(None, map(str.strip, texts)))

    def _result(self, row: Any) -> dict[str, Any]:
        if isinstance(row, str):
            return {"text": row, "turn_ids": self._turns_in(row)}

        settings = self._settings
        text = _at(row, settings.result_text)
        score, time = _at(row, settings.result_score), _at(row, settings.result_time)
        result: dict[str, Any] = {"text": text, "score": score, "time": time}
        # A model that stores by the server's own tools knows no turn ids, and makes some up.
        if settings.result_turn_ids is not None and self._stored:
            result["turn_ids"] = _at(row, settings.result_turn_ids)
        elif isinstance(text, str):
            result["turn_ids"] = self._turns_in(text)

        return result

    def _turns_in(self, text: str) -> list[str] | None:
        """The turns whose stored text a result contains verbatim; None if there are none."""
        # Without a path to ids, only the stored text within a result shows its turns.
        stored = chain.from_iterable(self._stored.values())
        matching = [chunk for chunk in stored if chunk["content"] in text]
        dated = [chunk for chunk in matching if chunk["text"] in text]
        turns: list[str] = []
        # If several chunks have the same content, the date tells which chunk it is.
        for chunk in dated or matching:
            turns += chunk["turn_ids"]

        return turns or None

    async def end_case(self, body: Mapping[str, Any]) -> None:
        if self._settings.reset_tool is not None:
            await self._reset(body)

    async def close(self) -> None:
        session, self._session = self._session, None
        try:
            if session is not None:
                await session.close()
        finally:
            self._home.remove()


_isolated: set[str] = set()
"""Commands whose processes are known to share nothing."""
_CHECKING: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def content_of(reply: ToolReply, option: str) -> Any:
    """The JSON that a tool returned, structured or as text. `option` is named in the error."""
    if reply.structured is not None:
        return reply.structured

    text = "".join(reply.texts)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        shown = one_line(text, 100)
        raise ModelError(f"the tool returned text that is not JSON ({option}): {shown}") from None


def _shown(content: Any) -> str:
    """The start of a tool's JSON, for messages."""
    return one_line(json.dumps(content, ensure_ascii=False), 100)


def _at(value: Any, path: str | None) -> Any:
    """The member at a path such as `data.items`; None without a path, and if there is none."""
    if path is None:
        return None
    if path == ".":
        return value

    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None

    return value
