"""The connection to an MCP server: over the pipes of a program, or over HTTP."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.systems.external.program import LongLineError, Program, ProgramError
from memeval.text.shown import one_line

NULL_HANDLER = logging.NullHandler()
CONNECTION_LOST = -32000
"""JSON-RPC's code for a connection that has closed."""
STREAM_ENDED = "the stream of events ended without the reply"
SHOWN_BYTES = 200
"""Bytes of an unreadable line that a message may show."""


@dataclass(frozen=True)
class Server:
    """Connection settings of a server: its command, or its URL."""

    name: str
    """The server's name in messages."""
    words: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The whole environment of its command."""
    url: str = ""
    headers: Mapping[str, str] | None = None
    timeout_s: float = 60.0


@asynccontextmanager
async def connect(
    server: Server,
    program: Program | None,
    on_message: Any,
    on_break: Callable[[BaseException], None],
) -> AsyncIterator[Any]:
    """A session of the MCP library, with a program that was started or with a server at a URL.

    `on_message` is the library's `message_handler`: it gets messages that are not replies, and
    unreadable lines as errors. `on_break` gets the error of a reply that broke off.
    """
    from mcp import ClientSession

    # The library prints a traceback for each line that it can't read.
    log = logging.getLogger("mcp")
    log.propagate = False
    log.addHandler(NULL_HANDLER)
    # It logs each unknown notification in seventy lines, on the root logger.
    logging.getLogger().addFilter(_is_not_of_library)
    over = _over_http(server, on_break) if program is None else _over_stdio(program)
    async with (
        over as streams,
        ClientSession(streams[0], streams[1], message_handler=on_message) as session,
    ):
        yield session


def _is_not_of_library(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parts[-3:] != ("mcp", "shared", "session.py")


@asynccontextmanager
async def _over_stdio(program: Program) -> AsyncIterator[Any]:
    """The two streams of a session with a program: a JSON message per line.

    The library's own transport is not used: it gives a program further variables, reads lines of
    any length, and waits for child processes that a program left behind.
    """
    import anyio

    received, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, to_send = anyio.create_memory_object_stream[Any](0)

    async def write() -> None:
        with suppress(OSError):
            async for sent in to_send:
                text = sent.message.model_dump_json(by_alias=True, exclude_none=True)
                await program.write(text.encode())

    async with incoming, outgoing, to_send, anyio.create_task_group() as group:
        group.start_soon(_receive, program, received)
        group.start_soon(write)
        try:
            yield incoming, outgoing
        finally:
            group.cancel_scope.cancel()


async def _receive(program: Program, received: Any) -> None:
    # Any of these errors ends the stream, which the session reports as a closed connection.
    with suppress(ProgramError, asyncio.IncompleteReadError, OSError):
        async with received:
            while True:
                try:
                    message = _message_in(await program.read())
                except LongLineError as error:
                    await received.send(error)
                    await program.skip_line()
                else:
                    await received.send(message)


def _message_in(line: bytes) -> Any:
    """The message in a line, as the library's session expects it, or another line's error."""
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCMessage

    try:
        return SessionMessage(JSONRPCMessage.model_validate_json(line))
    except ValueError:
        shown = one_line(line[:SHOWN_BYTES].decode(errors="replace"), 80)
        return ValueError(f"wrote a line that is not JSON-RPC in UTF-8: {shown}")


@asynccontextmanager
async def _over_http(
    server: Server, on_break: Callable[[BaseException], None]
) -> AsyncIterator[Any]:
    import httpx
    from mcp.client.streamable_http import streamable_http_client

    # Calls have their own time limit; with the library's, a slow call would end the session.
    timeout = httpx.Timeout(server.timeout_s, read=None)
    headers, hooks = dict(server.headers or {}), {"response": [_watcher(on_break)]}
    async with (
        httpx.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


def _watcher(on_break: Callable[[BaseException], None]) -> Callable[..., Any]:
    """A hook of the client that watches replies: the library does not report how they end."""
    import httpx

    class Body(httpx.AsyncByteStream):
        def __init__(self, stream: Any, call: object) -> None:
            self._stream, self._call = stream, call

        async def __aiter__(self) -> AsyncIterator[bytes]:
            can_resume = False
            try:
                async for part in self._stream:
                    # The library itself requests the rest of a stream whose events have ids.
                    can_resume = can_resume or part.startswith(b"id:") or b"\nid:" in part
                    yield part

                # The library closes a stream at the reply: a stream that ends had none.
                if self._call is not None and not can_resume:
                    error = {"code": CONNECTION_LOST, "message": STREAM_ENDED}
                    reply = {"jsonrpc": "2.0", "id": self._call, "error": error}
                    yield b"\n\ndata: " + json.dumps(reply).encode() + b"\n\n"
            except (httpx.NetworkError, httpx.ProtocolError) as broken:
                if not can_resume:
                    on_break(broken)
                raise

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def watch(response: httpx.Response) -> None:
        if response.request.method == "POST":
            # The library takes any 404 for the end of a session.
            if response.status_code == 404 and "mcp-session-id" not in response.request.headers:
                response.raise_for_status()

            call = None
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                # After a redirect, the request has its content only as a stream.
                call = json.loads(await response.request.aread()).get("id")

            response.stream = Body(response.stream, call)

    return watch
