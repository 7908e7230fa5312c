"""MCP servers over HTTP that die or send invalid replies; the time limit of a call is never
reached.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from doubles.loopback import LoopbackServer, Request, send, send_json

from memeval.errors import ModelError, UserError
from memeval.systems.external.mcp_session import McpSession, ToolReply
from memeval.systems.external.mcp_transport import Server
from memeval.systems.external.service import ToolError

NOTICED_S = 10.0
"""A tenth of the time limit of a call."""
EVENTS = {"Content-Type": "text/event-stream"}
Fault = Callable[["McpDouble", Request, asyncio.StreamWriter], Awaitable[bool]]


class McpDouble(LoopbackServer):
    """A server with one tool. At method `at`, `fault` replies instead."""

    def __init__(self, at: str, fault: Fault) -> None:
        super().__init__()
        self.at, self.fault = at, fault

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        if request.method != "POST":
            return await send_json(writer, 405, {})

        message = request.json()
        if message["method"] == self.at:
            return await self.fault(self, request, writer)
        if "id" not in message:
            return await send(writer, 202, b"")

        return await self.reply(message, writer)

    async def reply(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        tool = {"name": "search", "inputSchema": {"type": "object"}}
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "double", "version": "1"},
            },
            "tools/list": {"tools": [tool]},
            "tools/call": {"content": [{"type": "text", "text": "found"}]},
        }
        body = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
        return await send_json(writer, 200, body, {"Mcp-Session-Id": "double"})


async def hang_up(double: McpDouble, _: Request, writer: asyncio.StreamWriter) -> bool:
    """The server is killed before it replies."""
    writer.transport.abort()
    return False


async def break_off(double: McpDouble, _: Request, writer: asyncio.StreamWriter) -> bool:
    """The server is killed after it has begun a stream of events."""
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    writer.write(f"{head}9\r\n: ping\r\n\r\n\r\n".encode())
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.transport.abort()
    return False


async def end_early(double: McpDouble, _: Request, writer: asyncio.StreamWriter) -> bool:
    """The server properly ends a stream of events, but without the reply."""
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    return await send(writer, 200, f": ping\n\ndata: {json.dumps(note)}\n\n".encode(), EVENTS)


def replying(status: int, body: bytes, kind: str = "application/json") -> Fault:
    async def fault(_: McpDouble, __: Request, writer: asyncio.StreamWriter) -> bool:
        return await send(writer, status, body, {"Content-Type": kind})

    return fault


async def _calls(double: McpDouble, count: int) -> list[ToolReply | BaseException]:
    server = Server("the server", url=f"{double.address}/mcp", timeout_s=10 * NOTICED_S)
    async with asyncio.timeout(NOTICED_S):
        session = await McpSession.open(server)
        try:
            calls = [session.call("search", {"query": "x"}) for _ in range(count)]
            return list(await asyncio.gather(*calls, return_exceptions=True))
        finally:
            await session.close()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (hang_up, r"disconnected without|reset|closed"),
        (break_off, r"incomplete chunked read|reset|closed"),
        (end_early, r"the connection was closed: the stream of events ended without the reply$"),
        (replying(500, b"{}"), r"was closed: it replied 500 scripted$"),
        (replying(401, b"{}"), r"was closed: it replied 401 scripted$"),
        (replying(404, b"{}"), r"the connection was closed: Session terminated$"),
    ],
)
def test_death_of_a_server_is_noticed_immediately_and_not_a_tool_error(
    fault: Fault, message: str
) -> None:
    with McpDouble("tools/call", fault) as double:
        (error,) = asyncio.run(_calls(double, 1))

    assert isinstance(error, ModelError) and not isinstance(error, ToolError), error
    assert re.search(message, str(error)), error
    assert double.address not in str(error)


def test_dead_connection_fails_all_open_calls() -> None:
    with McpDouble("tools/call", break_off) as double:
        errors = asyncio.run(_calls(double, 4))

    assert [type(error) for error in errors] == [ModelError] * 4


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (replying(200, b"<html>Sign in</html>", "text/html"), "Unexpected content type: text/html"),
        (replying(200, b'{"found": 1}'), "does not fit MCP"),
        (replying(200, b"{" * 10_000), "does not fit MCP"),
    ],
)
def test_unreadable_reply_fails_its_call_immediately(fault: Fault, message: str) -> None:
    with McpDouble("tools/call", fault) as double:
        (error,) = asyncio.run(_calls(double, 1))

    assert isinstance(error, ToolError) and message in str(error)


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
@pytest.mark.parametrize(
    "fault", [hang_up, break_off, end_early, replying(200, b"<html>", "text/html")]
)
def test_server_that_fails_at_startup_is_not_waited_for(method: str, fault: Fault) -> None:
    with McpDouble(method, fault) as double, pytest.raises(UserError, match="can't be reached"):
        asyncio.run(_calls(double, 1))


def test_a_url_of_no_mcp_server_is_reported_with_its_status() -> None:
    message = "the server can't be reached: it replied 404"
    with (
        McpDouble("initialize", replying(404, b"{}")) as double,
        pytest.raises(UserError, match=message),
    ):
        asyncio.run(_calls(double, 1))


def test_a_redirect_to_a_path_with_a_slash_is_followed() -> None:
    async def move(double: McpDouble, request: Request, writer: asyncio.StreamWriter) -> bool:
        if request.path == "/mcp":
            return await send(writer, 307, b"", {"Location": f"{double.address}/mcp/"})

        reply = {"jsonrpc": "2.0", "id": request.json()["id"], "result": {"content": []}}
        return await send(writer, 200, f"data: {json.dumps(reply)}\n\n".encode(), EVENTS)

    with McpDouble("tools/call", move) as double:
        assert asyncio.run(_calls(double, 1)) == [ToolReply((), None)]


def test_unknown_notification_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    async def notify(double: McpDouble, request: Request, writer: asyncio.StreamWriter) -> bool:
        note = {"jsonrpc": "2.0", "method": "notifications/of-tomorrow", "params": {}}
        reply = {"jsonrpc": "2.0", "id": request.json()["id"], "result": {"content": []}}
        events = "".join(f"data: {json.dumps(message)}\n\n" for message in (note, reply))
        return await send(writer, 200, events.encode(), EVENTS)

    with McpDouble("tools/call", notify) as double:
        assert asyncio.run(_calls(double, 1)) == [ToolReply((), None)]

    assert caplog.text == ""


def test_interrupted_stream_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def begin(double: McpDouble, request: Request, writer: asyncio.StreamWriter) -> bool:
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        event = "id: 1\nretry: 10\ndata: \n\n"
        writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n{len(event):x}\r\n{event}".encode())
        await writer.drain()
        await asyncio.sleep(0.05)
        rest.update(request.json())
        writer.transport.abort()
        return False

    rest: dict[str, Any] = {}

    async def respond(self: McpDouble, request: Request, writer: asyncio.StreamWriter) -> bool:
        if request.method != "GET" or "last-event-id" not in request.headers:
            return await usual(self, request, writer)

        result = {"content": [{"type": "text", "text": "the rest"}]}
        event = json.dumps({"jsonrpc": "2.0", "id": rest["id"], "result": result})
        return await send(writer, 200, f"id: 2\ndata: {event}\n\n".encode(), EVENTS)

    usual = McpDouble.respond
    monkeypatch.setattr(McpDouble, "respond", respond)
    with McpDouble("tools/call", begin) as double:
        (reply,) = asyncio.run(_calls(double, 1))

    assert reply == ToolReply(("the rest",), None)
