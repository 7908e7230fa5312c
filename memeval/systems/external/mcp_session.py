"""A session with an MCP server, kept open by a separate task."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Self

from msgspec import Struct

from memeval.errors import ModelError, UserError, unknown
from memeval.llm.transport import time_limit
from memeval.systems.external.mcp_transport import CONNECTION_LOST, STREAM_ENDED, Server, connect
from memeval.systems.external.program import PASS_ON, Program
from memeval.systems.external.served import note_noise
from memeval.systems.external.service import ToolError
from memeval.text.shown import one_line

EXAMPLE = "is it an MCP server, and is its command or URL correct?"
CLOSED = (
    (CONNECTION_LOST, "Connection closed"),
    (32600, "Session terminated"),
    (CONNECTION_LOST, STREAM_ENDED),
)
"""Errors that mean a closed connection: the library's for a closed connection and for a session
that the server no longer knows, and memeval's for a stream. Servers also use the codes for other
errors.
"""
MAX_PAGES = 100
"""Maximum pages that are read of a list of tools."""
CLOSE_S = 10.0
"""The longest wait for a server to end."""


class ToolReply(Struct, frozen=True):
    texts: tuple[str, ...]
    """Its text blocks."""
    structured: Any
    """Its JSON, if it has an output schema; otherwise None."""
    others: tuple[str, ...] = ()
    """The kinds of its other blocks, such as `image`: they contain no text."""


class McpSession:
    """Calls the tools of one server.

    The library requires that the task that opened a session also closes it, but systems are called
    from many tasks: so a separate task opens the session, waits, and closes it.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._closing = asyncio.Event()
        self._opening: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._keep_open())
        self._program: Program | None = None
        self._noise = 0
        self._last_noise = ""
        """The last unreadable line since a call began, as messages describe it."""
        self._waiting: set[asyncio.Future[Exception]] = set()
        """One future per call under way, for an error if the library would let the call wait."""
        self._end = ""
        """The reason for the end of a connection over HTTP, if known."""
        self.tools: dict[str, Mapping[str, Any]] = {}
        """Input schemas by the tools' names."""
        self.listed: list[Any] = []
        """The tools as the library returns them."""

    @classmethod
    async def open(cls, server: Server) -> Self:
        """Opens a session, and waits for it. Raises `UserError` if the server can't be reached."""
        session = cls(server)
        try:
            async with time_limit(server.timeout_s):
                # A timeout cancels what it waits for, but the task that opens the session must also
                # end it, or it could not close what it has opened.
                await asyncio.shield(session._opening)
        except TimeoutError:
            await session.close()
            raise UserError(
                f"{server.name} did not start a session {session._describe_silence()}"
            ) from None
        except BaseException:
            await session.close()
            raise

        return session

    async def _keep_open(self) -> None:
        try:
            if self._server.words:
                words, variables = self._server.words, self._server.variables
                self._program = await Program.start(words, variables, EXAMPLE)

            on_message, on_break = self._on_message, self._on_break
            async with connect(self._server, self._program, on_message, on_break) as client:
                await self._result(client.initialize())
                self.listed = await self._result(_list_tools(client))
                for tool in self.listed:
                    self.tools[tool.name] = tool.inputSchema

                self._opening.set_result(client)
                await self._closing.wait()
        except asyncio.CancelledError:
            raise
        except UserError as error:
            self._opening.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - groups of errors of several libraries
            if self._opening.done():
                self._on_break(error)
            else:
                why = f"{_innermost(error)}{self._last_words()}"
                message = f"{self._server.name} can't be reached: {why}"
                hints = [EXAMPLE, PASS_ON] if self._program else [EXAMPLE]
                self._opening.set_exception(UserError(message, *hints))

    async def _on_message(self, message: object) -> None:
        """Counts lines that the library can't read, and passes to this handler as errors."""
        if not isinstance(message, Exception):
            return
        if self._program is not None:
            self._noise += 1
            self._last_noise = str(message)
        else:
            # Over HTTP, an unreadable message can only be a reply.
            self._fail_calls(message)

    def _on_break(self, error: BaseException) -> None:
        """Ends a session whose connection broke: the library would wait for replies forever."""
        self._end = _innermost(error)
        self._closing.set()
        self._fail_calls(ConnectionError(self._end))

    def _fail_calls(self, error: Exception) -> None:
        for call in self._waiting:
            if not call.done():
                call.set_result(error)

    def check_tool(self, name: str, given: Sequence[str], option: str) -> None:
        """Raises `UserError` if the tool does not exist, or needs further arguments."""
        if name not in self.tools:
            raise unknown(f"tool in system.{option}_tool", name, self.tools)

        # Some servers send null for an empty list.
        lacking = sorted(set(self.tools[name].get("required") or ()) - set(given))
        if lacking:
            raise UserError(
                f"system.{option}_arguments lacks {', '.join(lacking)}, which the tool "
                f"'{one_line(name, 60)}' needs",
                f"for example:  system.{option}_arguments={{{lacking[0]}: '...'}}",
            )

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolReply:
        """The result of a tool.

        Raises `ToolError` if it fails, and `ModelError` if the connection has closed.
        """
        client = await self._opening
        name = f"the tool '{one_line(tool, 60)}' of {self._server.name}"
        self._last_noise = ""
        try:
            async with time_limit(self._server.timeout_s):
                result = await self._result(client.call_tool(tool, dict(arguments)))
        except TimeoutError:
            raise ToolError(f"{name} did not reply {self._describe_silence()}") from None
        except Exception as error:
            if _is_closed(error):
                raise ModelError(f"{name} failed: {await self._describe_end(error)}") from error

            raise ToolError(f"{name} failed: {_innermost(error)}{self._last_words()}") from error
        finally:
            noise, self._noise = self._noise, 0
            if noise:
                note_noise("the server", noise)

        reply = _read(result)
        if result.isError:
            raise ToolError(f"{name} failed: {one_line(' '.join(reply.texts), 300)}")

        return reply

    async def _result(self, call: Coroutine[Any, Any, Any]) -> Any:
        """The result of a call. Raises an error that the session reports while the call waits."""
        failed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(call)
        self._waiting.add(failed)
        try:
            await asyncio.wait({task, failed}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise failed.result()

            return task.result()
        finally:
            self._waiting.discard(failed)
            task.cancel()

    async def _describe_end(self, error: Exception) -> str:
        if self._program is None:
            return f"the connection was closed: {self._end or _innermost(error)}"

        return f"the server {await self._program.describe_end('this case')}"

    def _describe_silence(self) -> str:
        """The time without a reply, and what the server wrote instead."""
        wrote = f", but {self._last_noise}" if self._last_noise else ""
        return f"within {self._server.timeout_s:g} s{wrote}{self._last_words()}"

    def _last_words(self) -> str:
        return "" if self._program is None else self._program.last_words()

    async def close(self) -> None:
        """Ends the session, and a server that was started for it."""
        self._closing.set()
        try:
            if self._program is not None:
                # Stopped first, because the library waits for what the program still writes.
                await self._program.stop()

            # A session that is not open yet does not check whether to close.
            wait_s = CLOSE_S if self._opening.done() else 0
            _, late = await asyncio.wait({self._task}, timeout=wait_s)
            for task in late:
                task.cancel()
        finally:
            self._task.cancel()

        await asyncio.gather(self._task, return_exceptions=True)
        if self._opening.done() and not self._opening.cancelled():
            # asyncio logs an exception that was never retrieved when the future is collected.
            self._opening.exception()


async def _list_tools(client: Any) -> list[Any]:
    """The tools of all pages of the list. Raises `UserError` if the list does not end."""
    listed, cursor = [], None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor)
        listed += page.tools
        cursor = page.nextCursor
        if cursor is None:
            return listed

    raise UserError(f"the MCP server lists its tools on more than {MAX_PAGES} pages")


def _read(result: Any) -> ToolReply:
    texts, others = [], []
    for block in result.content:
        text = _text_of(block)
        if text is None:
            others.append(str(block.type))
        else:
            texts.append(text)

    structured = result.structuredContent
    # The SDK repeats the string of a tool, which may be JSON itself.
    if structured == {"result": "".join(texts)}:
        structured = None

    return ToolReply(tuple(texts), structured, tuple(others))


def _text_of(block: Any) -> str | None:
    if block.type == "resource":
        return getattr(block.resource, "text", None)

    return block.text if block.type == "text" else None


def _is_closed(error: Exception) -> bool:
    import anyio

    reply = getattr(error, "error", None)
    if reply is not None:
        return (reply.code, reply.message) in CLOSED

    return isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError | OSError)


def _innermost(error: BaseException) -> str:
    """A description of the first error in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]

    # httpx adds the whole URL, and a link to a page about the status.
    response = getattr(error, "response", None)
    if response is not None and response.is_error:
        return f"it replied {response.status_code} {one_line(response.reason_phrase, 60)}"

    # By name, because the library with which mcp validates replies is not a dependency of memeval.
    if type(error).__name__ == "ValidationError" and hasattr(error, "errors"):
        fault = error.errors(include_url=False)[0]
        path, message = ".".join(map(str, fault["loc"])), fault["msg"]
        return f"the reply does not fit MCP: {one_line(f'{path}: {message}', 200)}"

    return one_line(str(error), 300) or type(error).__name__
