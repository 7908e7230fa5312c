"""A session with an MCP server, kept open by a task of its own."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TextIO, cast

from memeval.errors import ModelError, UserError, unknown
from memeval.shown import one_line
from memeval.systems.external.served import note_noise

LAST_WORDS_BYTES = 4096
"""Bytes at the end of a server's stderr that are looked through."""
NOWHERE = logging.NullHandler()
CLOSE_S = 10.0
"""The longest wait for a server to end."""


@dataclass(frozen=True)
class Server:
    """How a server is reached: its command, or its address."""

    name: str
    """How messages name it."""
    words: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] | None = None
    timeout_s: float = 60.0


@dataclass(frozen=True)
class ToolReply:
    """What a tool returned."""

    texts: tuple[str, ...]
    """Its blocks of text."""
    structured: Any
    """Its JSON, where it has an output schema; else None."""


class Session:
    """Calls the tools of one server.

    The library wants a session closed by the task that opened it, and systems are called from many:
    so a task of its own opens it, waits, and closes it.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._keep_open())
        self._stderr: TextIO | None = None
        self._noise = 0
        self.tools: dict[str, Mapping[str, Any]] = {}
        """Input schemas by the tools' names."""

    @classmethod
    async def open(cls, server: Server) -> Session:
        """A session that is ready. Raises `UserError` where the server can't be reached."""
        session = cls(server)
        try:
            async with asyncio.timeout(server.timeout_s):
                # A timeout cancels what it waits for. The task that opens the session must end by
                # itself, or it could not close what it has opened.
                await asyncio.shield(session._opened)
        except TimeoutError:
            await session.close()
            raise UserError(
                f"{server.name} did not begin a session within {server.timeout_s:g} s"
                f"{session._last_words()}"
            ) from None
        except BaseException:
            await session.close()
            raise

        return session

    async def _keep_open(self) -> None:
        try:
            stderr = self._open_stderr()
            async with connect(self._server, stderr, self._on_message) as client:
                await client.initialize()
                for tool in (await client.list_tools()).tools:
                    self.tools[tool.name] = tool.inputSchema

                self._opened.set_result(client)
                await self._closing.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - groups of errors of several libraries
            if not self._opened.done():
                self._opened.set_exception(
                    UserError(
                        f"{self._server.name} can't be reached: {_innermost(error)}"
                        f"{self._last_words()}",
                        "is it an MCP server, and its command or address right?",
                    )
                )

    async def _on_message(self, message: object) -> None:
        """Counts lines that the library can't read; it hands them on as errors."""
        self._noise += isinstance(message, Exception)

    def check_tool(self, name: str, given: Sequence[str], option: str) -> None:
        """Raises `UserError` for a tool that is not there, or that needs other arguments."""
        if name not in self.tools:
            raise unknown(f"tool in system.{option}_tool", name, self.tools)

        lacking = sorted(set(self.tools[name].get("required", ())) - set(given))
        if lacking:
            raise UserError(
                f"system.{option}_arguments lacks {', '.join(lacking)}, which the tool "
                f"'{one_line(name, 60)}' needs",
                f"for example:  system.{option}_arguments={{{lacking[0]}: '...'}}",
            )

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolReply:
        """What a tool returns. Raises `ModelError` where it fails."""
        client = await self._opened
        name = f"the tool '{one_line(tool, 60)}' of {self._server.name}"
        try:
            async with asyncio.timeout(self._server.timeout_s):
                result = await client.call_tool(tool, dict(arguments))
        except TimeoutError:
            raise ModelError(
                f"{name} gave no reply within {self._server.timeout_s:g} s{self._last_words()}"
            ) from None
        except Exception as error:
            raise ModelError(f"{name} failed: {_innermost(error)}{self._last_words()}") from error
        finally:
            noise, self._noise = self._noise, 0
            if noise:
                note_noise("the server", noise)

        texts = tuple(block.text for block in result.content if block.type == "text")
        if result.isError:
            raise ModelError(f"{name} failed: {one_line(' '.join(texts), 300)}")

        return ToolReply(texts, result.structuredContent)

    def _open_stderr(self) -> TextIO:
        # A real file: the server's process writes into it.
        file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - `close` closes it
        self._stderr = cast(TextIO, file)
        return self._stderr

    def _last_words(self) -> str:
        if self._stderr is None or self._stderr.closed:
            return ""

        size = os.fstat(self._stderr.fileno()).st_size
        start = max(0, size - LAST_WORDS_BYTES)
        # `pread` leaves the position alone, at which the server's process writes.
        content = os.pread(self._stderr.fileno(), LAST_WORDS_BYTES, start)
        lines = content.decode("utf-8", "replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        return f"; its last words: {one_line(last)}" if last else ""

    async def close(self) -> None:
        """Ends the session, and a server that was started for it."""
        self._closing.set()
        _, late = await asyncio.wait({self._task}, timeout=CLOSE_S)
        for task in late:
            task.cancel()

        await asyncio.gather(self._task, return_exceptions=True)
        if self._opened.done() and not self._opened.cancelled():
            # An exception that nobody fetches is logged by asyncio when the future is collected.
            self._opened.exception()
        if self._stderr is not None:
            self._stderr.close()


@asynccontextmanager
async def connect(server: Server, stderr: TextIO, on_message: Any) -> AsyncIterator[Any]:
    """A session of the library's own; a server that is started writes its stderr to `stderr`.

    `on_message` is the library's `message_handler`: it gets what is not a reply, and lines that
    can't be read as errors.
    """
    from mcp import ClientSession, StdioServerParameters, stdio_client

    # The library prints a traceback for each line that it can't read.
    log = logging.getLogger("mcp")
    log.propagate = False
    log.addHandler(NOWHERE)
    async with AsyncExitStack() as stack:
        if server.words:
            parameters = StdioServerParameters(
                command=server.words[0], args=list(server.words[1:]), env=dict(os.environ)
            )
            streams = await stack.enter_async_context(stdio_client(parameters, errlog=stderr))
        else:
            streams = await stack.enter_async_context(_over_http(server))

        session = ClientSession(streams[0], streams[1], message_handler=on_message)
        yield await stack.enter_async_context(session)


@asynccontextmanager
async def _over_http(server: Server) -> AsyncIterator[Any]:
    import httpx
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx.Timeout(server.timeout_s)
    async with (
        httpx.AsyncClient(headers=dict(server.headers or {}), timeout=timeout) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


def _innermost(error: BaseException) -> str:
    """The first of the errors in a group, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]

    return one_line(str(error), 300) or type(error).__name__
