"""Shared by the recipes of asynchronous libraries: the four paths of `system=http`, and an endpoint
whose calls are counted. It needs `openai` and the standard library.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from openai import AsyncOpenAI


class Meter:
    """A client of the endpoint of OPENAI_BASE_URL and OPENAI_API_KEY, and what its calls used."""

    def __init__(self) -> None:
        self.client = AsyncOpenAI()
        self._usages: list[dict[str, Any]] = []
        self._count(self.client.chat.completions, "chat")
        self._count(self.client.embeddings, "embed")

    def _count(self, resource: Any, kind: str) -> None:
        """Has each call of a resource of the client noted."""
        create = resource.create

        async def counted(**options: Any) -> Any:
            reply = await create(**options)
            self.note(kind, options["model"], reply.usage)
            return reply

        resource.create = counted

    def note(self, kind: str, model: str, used: Any) -> None:
        """Notes a call; `used` is the usage of its reply, None where it has none."""
        usage = {"kind": kind, "model": model, "provider": "openai"}
        usage["prompt_tokens"] = used.prompt_tokens if used else None
        usage["completion_tokens"] = getattr(used, "completion_tokens", None)
        self._usages.append(usage)

    def take(self) -> list[dict[str, Any]]:
        """The usage since the last call, summed by kind and model."""
        taken, self._usages = self._usages, []
        sums: dict[tuple[str, str], dict[str, Any]] = {}
        for usage in taken:
            key = (usage["kind"], usage["model"])
            total = sums.setdefault(
                key, {**usage, "calls": 0, "prompt_tokens": 0, "completion_tokens": 0}
            )
            total["calls"] += 1
            for name in ("prompt_tokens", "completion_tokens"):
                total[name] = _sum(total[name], usage[name], embeds=usage["kind"] == "embed")

        return list(sums.values())


def _sum(total: int | None, more: int | None, *, embeds: bool) -> int | None:
    """Unknown as soon as one part is; what an embedding does not have is zero."""
    if more is None:
        return total if embeds else None

    return None if total is None else total + more


class Memory(Protocol):
    """One memory: that of one case."""

    async def ingest(self, chunks: list[dict[str, Any]]) -> int:
        """Stores chunks, each once, and returns how many could not be stored whole."""

    async def search(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The results of a search, best first."""

    async def close(self) -> None:
        """Forgets all."""


class Service:
    """The memories of all namespaces, on an event loop of their own."""

    def __init__(self, make: Callable[[Meter], Memory]) -> None:
        self._make = make
        self._memories: dict[str, tuple[Memory, Meter, asyncio.Lock]] = {}
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def operate(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request, made on the event loop."""
        return asyncio.run_coroutine_threadsafe(self._operate(operation, body), self._loop).result()

    async def _operate(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        namespace = body["namespace"]
        if operation == "reset":
            await self._reset(namespace)
            return {}

        memory, meter, lock = self._memories[namespace]
        if operation == "ready":
            return {"ready": True}

        # One request at a time for each memory: what the meter holds is then of this request.
        async with lock:
            meter.take()
            if operation == "ingest":
                lost = await memory.ingest(body["chunks"])
                return {"lost": lost, "usage": meter.take()}
            if operation == "search":
                results = await memory.search(body)
                return {"results": results[: body["top_k"]], "usage": meter.take()}

        raise KeyError(operation)

    async def _reset(self, namespace: str) -> None:
        if namespace in self._memories:
            memory, _, lock = self._memories.pop(namespace)
            async with lock:
                await memory.close()

        meter = Meter()
        self._memories[namespace] = (self._make(meter), meter, asyncio.Lock())


def serve(make: Callable[[Meter], Memory]) -> None:
    """Serves the memories that `make` makes at the port that the command line names."""
    # The cleanup at exit also runs if the server is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    listen(Service(make).operate)


def listen(operate: Callable[[str, dict[str, Any]], dict[str, Any]]) -> None:
    """Answers each operation with what `operate` makes of its body, as JSON.

    The port is the first word of the command line.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                status, reply = 200, operate(self.path.strip("/"), body)
            except KeyError as error:
                status, reply = 404, {"error": f"unknown: {error}"}
            except Exception as error:  # noqa: BLE001 - the status tells memeval, which notes it
                status, reply = 500, {"error": f"{type(error).__name__}: {error}"[:300]}

            content = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
