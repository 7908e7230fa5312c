"""The example services of docs/any_memory/, as users start them, and faulty variants of them."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

from doubles.loopback import Request, ServiceDouble, send

from memeval.llm.metering import Ledger, metered
from memeval.records import Answer
from memeval.testing.under_test import SystemUnderTest, play

EXAMPLES = Path(__file__).parents[1] / "docs" / "any_memory"

QUESTION = "What does Tomas build from cedar?"

Operate = Callable[[str, Any], Any]


class Under(SystemUnderTest):
    """A served memory with the settings of a test."""


def asked(under: Under, question: str = QUESTION) -> tuple[Answer, Ledger]:
    """The answer to a question about the sample conversation, and its ledger."""
    kept: list[Any] = []

    async def ask(sut: SystemUnderTest) -> None:
        with metered(Ledger()) as ledger:
            system = await sut.fill_system()
            ledger.scope = "the question's id"
            kept.extend([await sut.ask(system, question), ledger])

    asyncio.run(play(ask, under))
    answer, ledger = kept
    return answer, ledger


def example() -> ModuleType:
    """A fresh copy of the example server in Python."""
    spec = importlib.util.spec_from_file_location("memory_server", EXAMPLES / "memory_server.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def example_server() -> Iterator[str]:
    """Runs the example server in a thread of this process; yields its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), example().Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def started(*words: str) -> Iterator[str]:
    """Starts a server that prints its URL on its first line."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def program(name: str = "memory_program.py") -> str:
    """The command that starts an example program."""
    return f"{sys.executable} {EXAMPLES / name}"


class ScriptedMemory(ServiceDouble):
    """The example server over loopback, with scripted faults and replies."""

    def __init__(self, change: Mapping[str, Any] | None = None) -> None:
        """`change`: functions by operation that take body and reply, and return the reply to send
        instead.
        """
        super().__init__()
        self.operate: Operate = example().operate
        self.change = dict(change or {})
        self.raw: dict[str, bytes] = {}
        """Raw replies by operation, sent without checks."""

    def answer(self, request: Request) -> tuple[int, Any]:
        operation, body = request.path.strip("/"), request.json()
        try:
            reply = self.operate("search" if operation == "answer" else operation, body)
        except KeyError as error:
            return 404, {"error": f"unknown: {error}"}

        if operation == "answer":
            reply["text"] = " ".join(row["text"] for row in reply["results"][:1])

        return 200, self.change[operation](body, reply) if operation in self.change else reply

    async def respond(self, request: Request, writer: Any) -> bool:
        raw = self.raw.get(request.path.strip("/"))
        if raw is None:
            return await super().respond(request, writer)

        self.requests.append(request)
        return await send(
            writer, 200, raw, {"Content-Type": "text/html"} if raw.startswith(b"<") else {}
        )

    def sent(self, operation: str) -> list[dict[str, Any]]:
        """The bodies of the requests of an operation."""
        return [request.json() for request in self.requests if request.path.strip("/") == operation]


WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
NOTE = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
TOOLS = [
    {"name": "find", "description": "Finds texts by a word.", "path": "/tools/find"}
    | {"parameters": WORD},
    {"name": "add_note", "description": "Keeps a note.", "path": "/tools/note"}
    | {"parameters": NOTE},
]


class ToolService(ScriptedMemory):
    """The example server, which also serves a tool that searches and one that stores a note."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: dict[str, list[str]] = {}
        self.found: Callable[[Mapping[str, Any]], tuple[int, Any]] | None = None
        """Replaces the reply of `find`."""
        self.refused: tuple[int, Any] | None = None
        """Replaces the reply to a note, which is then not kept."""

    def answer(self, request: Request) -> tuple[int, Any]:
        body = request.json()
        notes = self.notes.setdefault(body["namespace"], [])
        match request.path:
            case "/tools/note":
                if self.refused is not None:
                    return self.refused

                notes.append(body["note"])
                return 200, {"text": "kept"}
            case "/tools/find":
                if self.found is not None:
                    return self.found(body)

                words = body["word"].lower().split()
                said = [text for text in notes if any(word in text.lower() for word in words)]
                asked = {"namespace": body["namespace"], "query": body["word"], "top_k": 3}
                reply = self.operate("search", asked)
                return 200, {"results": [*reply["results"], *({"text": text} for text in said)]}
            case "/dump":
                return 200, {"results": [{"text": text, "turn_ids": []} for text in notes]}

        return super().answer(request)
