"""Chat calls over aiohttp: what is sent, to whom, and what the client needs for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from memeval.llm.transport import Transport

CALL = """
import asyncio, sys
from memeval.llm.transport import Transport
from memeval.testing.endpoint import ScriptedEndpoint
async def call(address):
    transport = Transport(address, api_key="", headers={}, connections=1)
    status, _, _ = await transport.send(f"{address}/chat/completions", b"{}", 9999)
    await transport.aclose()
    return status
with ScriptedEndpoint() as endpoint:
    print(asyncio.run(call(endpoint.base_url)), "openai" in sys.modules, "httpx2" in sys.modules)
"""


class Recorder(ThreadingHTTPServer):
    """A proxy, or an endpoint, that notes what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, dict[str, str]]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def _note(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.path, headers))

    def do_POST(self) -> None:
        self._note()
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_CONNECT(self) -> None:
        self._note()
        self.send_error(502)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with Recorder() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def send(address: str, headers: dict[str, str] | None = None) -> int:
    async def call() -> int:
        transport = Transport(address, api_key="key", headers=headers or {}, connections=1)
        try:
            status, _, _ = await transport.send(f"{address}/chat/completions", b"{}", 9999)
            return status
        finally:
            await transport.aclose()

    return asyncio.run(call())


def test_a_call_does_without_packages_that_take_long_to_load() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALL], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split()[1:] == ["False", "False"]


def test_headers_of_the_user_replace_ours_in_any_case(recorder: Recorder) -> None:
    send(f"http://{recorder.address}", {"AUTHORIZATION": "theirs", "user-agent": "me"})
    ((_, headers),) = recorder.requests
    assert (headers["authorization"], headers["user-agent"]) == ("theirs", "me")


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_a_proxy_of_the_environment_is_used(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, f"http://me:p%40ss@{recorder.address}")
    assert send("http://api.example/v1") == 200
    ((path, headers),) = recorder.requests
    assert path == "http://api.example/v1/chat/completions"
    assert headers["authorization"] == "Bearer key"
    assert headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


def test_a_proxy_of_a_secure_endpoint_is_not_sent_the_key(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", f"http://me:p%40ss@{recorder.address}")
    with suppress(Exception):
        send("https://api.example/v1")

    ((path, headers),) = recorder.requests
    assert path == "api.example:443"
    assert "authorization" not in headers
    assert headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


def test_an_address_without_a_proxy_is_called_directly(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert send(f"http://{recorder.address}/v1") == 200
    assert recorder.requests[0][0] == "/v1/chat/completions"
