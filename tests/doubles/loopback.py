"""The base of the doubles of HTTP services: a server on loopback, in a separate thread.

It needs nothing but asyncio.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True)
class Request:
    """A request as received."""

    method: str
    target: str
    """Path and query, as sent."""
    headers: Mapping[str, str]
    """By lower-case name."""
    raw: bytes

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query))

    def json(self) -> dict[str, Any]:
        """The body as a JSON object; empty without a body."""
        body: dict[str, Any] = json.loads(self.raw) if self.raw else {}
        return body


class LoopbackServer(ABC):
    """Serves HTTP/1.1 on 127.0.0.1 inside a `with`."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        """0 chooses a free port; read it inside the `with`."""
        self.connections = 0
        """Connections opened so far."""
        self._conversations: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        """Tasks of the open connections, each with its writer."""
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        # Daemon: a test that never leaves its `with` must not keep the process alive.
        self._thread = threading.Thread(target=self._serve, name=type(self).__name__, daemon=True)

    @abstractmethod
    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; returns whether the connection stays open."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=512, limit=2**24)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._hang_up(server))
        self._loop.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        conversation = self._loop.create_task(self._converse(reader, writer))
        self._conversations[conversation] = writer
        conversation.add_done_callback(self._conversations.pop)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self.respond(await _read(reader), writer):
                pass
        # The client hung up or the server is stopping: neither is an error of the tested code.
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _hang_up(self, server: asyncio.Server) -> None:
        """Stops the server and cuts all open connections."""
        # asyncio leaks the socket of a connection that is being opened while its task is cancelled
        # or its server is closed. So accept no more, and wait for those that are being opened.
        for listener in server.sockets:
            self._loop.remove_reader(listener.fileno())

        while opening := asyncio.all_tasks() - {asyncio.current_task(), *self._conversations}:
            await asyncio.wait(opening)

        server.close()

        # A task that is cancelled before its first step never reaches its `finally`, and a close
        # waits for a client that no longer reads. So cut each connection here.
        for task, writer in self._conversations.items():
            task.cancel()
            writer.transport.abort()

        await asyncio.gather(*self._conversations, return_exceptions=True)

        # Connections need a few iterations of the loop to close.
        for _ in range(5):
            await asyncio.sleep(0)


class ServiceDouble(LoopbackServer):
    """A double of a service that keeps its requests and fails as `failures` says."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.requests: list[Request] = []
        """In order of arrival, including refused requests."""
        self.failures: list[tuple[str, str, int]] = []
        """Method, part of a path, status.

        The next request that matches gets the status instead of an answer, once per entry.
        """
        self.retry_after = "0"
        """The `Retry-After` header of such a reply."""

    def count(self, method: str, part: str) -> int:
        """Number of requests so far with this method and a path that contains `part`."""
        return sum(
            1 for request in self.requests if request.method == method and part in request.path
        )

    @abstractmethod
    def answer(self, request: Request) -> tuple[int, Any]:
        """Status and JSON payload.

        A payload of type `Events` is sent as a stream of server-sent events.
        """

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        self.requests.append(request)

        for failure in self.failures:
            method, part, status = failure
            if method == request.method and part in request.path:
                # The list changes while it is iterated, but the loop ends here.
                self.failures.remove(failure)
                wait = {"Retry-After": self.retry_after}
                return await send_json(writer, status, {"detail": f"scripted {status}"}, wait)

        status, payload = self.answer(request)
        if isinstance(payload, Events):
            return await send(
                writer, status, payload.encode_reply(), {"Content-Type": "text/event-stream"}
            )

        return await send_json(writer, status, payload)


class Events(list[dict[str, Any]]):
    """Payloads of server-sent events."""

    def encode_reply(self) -> bytes:
        events = [*map(json.dumps, self), "[DONE]"]
        return "".join(f"data: {event}\n\n" for event in events).encode()


async def _read(reader: asyncio.StreamReader) -> Request:
    # latin-1 decodes any byte: `respond` judges a head that is not ASCII.
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"(?i)^content-length:\s*(\d+)", head, re.MULTILINE)
    raw = await reader.readexactly(int(length[1])) if length else b""

    start, *lines = head.split("\r\n")
    method, target, _ = start.split(" ", 2)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name:
            headers[name.strip().lower()] = value.strip()

    return Request(method=method, target=target, headers=headers, raw=raw)


def reply_head(status: int, length: int, headers: Mapping[str, str]) -> bytes:
    """The head of a reply of `length` bytes; JSON unless `headers` name another type."""
    all_headers = {"Content-Type": "application/json", **headers}
    lines = [f"HTTP/1.1 {status} scripted", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in all_headers.items()]

    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def send(
    writer: asyncio.StreamWriter, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> bool:
    """Sends a whole reply; the connection stays open."""
    writer.write(reply_head(status, len(body), headers or {}) + body)
    await writer.drain()
    return True


async def send_json(
    writer: asyncio.StreamWriter,
    status: int,
    payload: Any,
    headers: Mapping[str, str] | None = None,
) -> bool:
    """Sends `payload` as JSON."""
    return await send(writer, status, json.dumps(payload).encode(), headers)
