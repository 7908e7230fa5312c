"""Calls over aiohttp, alone and under openai's client: what is sent, and to whom."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from memeval.errors import ModelError, UserError
from memeval.llm.breaker import Breaker
from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.faults import FaultKind, Setback, connection_setback
from memeval.llm.keys import NO_KEY
from memeval.llm.openai_client import ClientTransport
from memeval.llm.transport import Transport, authorities

BOTH_PATHS = pytest.mark.parametrize("path", ["/chat/completions", "/embeddings"])
EITHER = pytest.mark.parametrize("kind", [Transport, ClientTransport])
CALL = """
import asyncio, sys
from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from doubles.endpoint import ScriptedEndpoint
async def call(address):
    endpoint = Endpoint(EndpointSettings(address, "key", 1, 30.0, 0))
    await endpoint.post(sys.argv[1], {"messages": [], "input": ["text"]}, as_object)
    await endpoint.aclose()
with ScriptedEndpoint() as endpoint:
    asyncio.run(call(endpoint.base_url))
print("openai" in sys.modules, "httpx2" in sys.modules)
"""


class Recorder(ThreadingHTTPServer):
    """A proxy or endpoint that records its requests."""

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
        """Logs nothing."""


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with Recorder() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of a file with the key and the self-signed certificate of a local server."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "of the test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )

    path = tmp_path_factory.mktemp("tls") / "authority.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def secure(recorder: Recorder, authority: Path) -> str:
    """The URL of the recorder, which now speaks only TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority)
    recorder.socket = context.wrap_socket(recorder.socket, server_side=True)
    return f"https://{recorder.address}/v1"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def send(
    kind: type[Transport], address: str, headers: dict[str, str] | None = None, key: str = "key"
) -> int:
    async def call() -> int:
        transport = kind(address, api_key=key, headers=headers or {})
        try:
            status, _, _ = await transport.send("/chat/completions", b"{}", 9999)
            return status
        finally:
            await transport.aclose()

    return asyncio.run(call())


@pytest.mark.slow
@pytest.mark.parametrize(("path", "loads"), [("/chat/completions", False), ("/embeddings", True)])
def test_only_embeddings_import_the_openai_client(path: str, loads: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALL, path],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        # Its endpoint is a double from the tests.
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert done.stdout.split() == [str(loads)] * 2


@EITHER
def test_user_headers_replace_ours_regardless_of_case(
    recorder: Recorder, kind: type[Transport]
) -> None:
    send(kind, f"http://{recorder.address}", {"AUTHORIZATION": "theirs", "user-agent": "me"})
    ((_, headers),) = recorder.requests
    assert (headers["authorization"], headers["user-agent"]) == ("theirs", "me")


@pytest.mark.sampled(kept=1)
@EITHER
@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_a_proxy_of_the_environment_is_used(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, variable: str, kind: type[Transport]
) -> None:
    monkeypatch.setenv(variable, f"http://me:p%40ss@{recorder.address}")
    assert send(kind, "http://api.example/v1") == 200
    ((path, headers),) = recorder.requests
    assert path == "http://api.example/v1/chat/completions"
    assert headers["authorization"] == "Bearer key"
    assert headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


@EITHER
def test_proxy_of_an_https_endpoint_does_not_get_the_key(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, kind: type[Transport]
) -> None:
    monkeypatch.setenv("https_proxy", f"http://me:p%40ss@{recorder.address}")
    with pytest.raises(Exception, match="Bad Gateway") as error:
        send(kind, "https://api.example/v1")

    # Not billed: the endpoint got no request.
    setback = connection_setback(error.value, "api.example")
    message = "the proxy can't connect to api.example: 502 Bad Gateway"
    assert setback == Setback(message, FaultKind.UNREACHABLE)
    ((path, headers),) = recorder.requests
    assert path == "api.example:443"
    assert "authorization" not in headers
    assert headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


@pytest.mark.parametrize("proxy", ["http://me:secret@[bad", "http://me:secret/1@h.test:80"])
def test_proxy_that_is_not_a_url_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(UserError, match=r"proxy http://\S+ is not a URL") as error:
        Transport("https://api.example/v1", api_key="", headers={})

    assert "secret" not in str(error.value)


@EITHER
def test_url_excluded_by_no_proxy_is_called_directly(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, kind: type[Transport]
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert send(kind, f"http://{recorder.address}/v1") == 200
    assert recorder.requests[0][0] == "/v1/chat/completions"


@EITHER
def test_no_headers_or_keys_of_the_environment_are_sent(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, kind: type[Transport]
) -> None:
    for name in ("OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "of the environment")

    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Own: of the environment")
    for key in ("", "key"):
        send(kind, f"http://{recorder.address}/v1", key=key)

    (_, without), (_, headers) = recorder.requests
    assert without == {name: headers[name] for name in headers if name != "authorization"}
    assert headers == {
        "host": recorder.address,
        "content-type": "application/json",
        "accept": "application/json",
        "user-agent": "memeval",
        "authorization": "Bearer key",
        "accept-encoding": headers["accept-encoding"],
        "content-length": "2",
    }


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize(
    ("key", "headers", "sent"),
    [
        ("a-key", {}, {"api-key": "a-key"}),
        ("eyJ0.e30.c2ln", {}, {"authorization": "Bearer eyJ0.e30.c2ln"}),
        (NO_KEY, {"Authorization": "Bearer mine"}, {"authorization": "Bearer mine"}),
        (NO_KEY, {"API-Key": "mine"}, {"api-key": "mine"}),
    ],
)
@BOTH_PATHS
def test_azure_gets_its_url_and_authentication_headers(
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    key: str,
    headers: dict[str, str],
    sent: dict[str, str],
) -> None:
    for name in ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "OPENAI_API_VERSION"):
        monkeypatch.setenv(name, "of the environment")

    settings = EndpointSettings(
        f"http://{recorder.address}", key, 1, 30.0, 0, None, headers, api_version="2024-10-21"
    )

    async def call() -> None:
        endpoint = Endpoint(settings)
        await endpoint.post(path, {"model": "my-gpt", "input": ["text"]}, as_object)
        await endpoint.aclose()

    asyncio.run(call())
    ((target, received),) = recorder.requests
    assert target == f"/openai/deployments/my-gpt{path}?api-version=2024-10-21"
    names = ("authorization", "api-key")
    assert {name: received[name] for name in names if name in received} == sent


SECURE_CALL = """
import asyncio, sys
from memeval.errors import ModelError
from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
async def call(address):
    endpoint = Endpoint(EndpointSettings(address, "key", 1, 5.0, 0))
    try:
        return (await endpoint.post(sys.argv[2], {}, as_object)).value
    except ModelError as error:
        return error
    finally:
        await endpoint.aclose()
print(asyncio.run(call(sys.argv[1])))
"""


def call_securely(address: str, path: str) -> str:
    """What a separate process prints: the certificate authorities are read once per process."""
    done = subprocess.run(
        [sys.executable, "-c", SECURE_CALL, address, path],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.slow
@BOTH_PATHS
def test_certificate_authority_from_the_environment_is_trusted(
    recorder: Recorder, secure: str, authority: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    assert call_securely(secure, path) == "{}"
    ((target, headers),) = recorder.requests
    assert (target, headers["authorization"]) == (f"/v1{path}", "Bearer key")


@pytest.mark.slow
@BOTH_PATHS
def test_endpoint_with_an_untrusted_certificate_gets_no_request(
    recorder: Recorder, secure: str, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    message = call_securely(secure, path)
    assert message.startswith(
        "TLS: the certificate of 127.0.0.1 was refused: self-signed certificate"
    )
    assert recorder.requests == []


def test_run_that_an_untrusted_certificate_ends_names_the_variable(
    secure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is running, so the hint must not send the user to look for it."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)

    async def call() -> None:
        breaker = Breaker()
        endpoint = Endpoint(EndpointSettings(secure, "key", 1, 5.0, 0), breaker=breaker)

        async def work() -> None:
            with suppress(ModelError):
                await endpoint.post("/embeddings", {}, as_object)

        try:
            await breaker.run(work(), {secure: "llm.base_url"}, None)
        finally:
            await endpoint.aclose()

    with pytest.raises(UserError, match="TLS: the certificate of") as error:
        asyncio.run(call())

    assert "llm.base_url=… SSL_CERT_FILE=…" in error.value.hints[0]


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), ("no", "no certificate")])
def test_file_of_authorities_that_cannot_be_read_is_named(
    content: str | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "company.pem"
    if content is not None:
        file.write_text(content)

    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    authorities.cache_clear()
    with pytest.raises(UserError, match=f"SSL_CERT_FILE={file} can't be read: .*{reason}"):
        Transport("https://127.0.0.1:1/v1", api_key="", headers={})
