"""A dead endpoint is reported immediately and stops the work that needs it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest
from doubles.endpoint import ScriptedEndpoint
from doubles.faults import Faults
from doubles.loopback import LoopbackServer, Request, send

from memeval.errors import ModelError, UserError, WorldError
from memeval.llm.breaker import CONTINUES, Breaker, try_connection
from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.faults import FaultKind, Setback

BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}


async def no_sleep(_: float) -> None:
    await asyncio.sleep(0)


def settings(address: str) -> EndpointSettings:
    return EndpointSettings(
        base_url=address, api_key="k", max_concurrency=4, timeout_s=5.0, patience_s=300.0
    )


def free_address() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def kept(
    address: str,
    *,
    calls: int,
    most: int | None = 20,
    options: dict[str, str] | None = None,
    roles: dict[str, str] | None = None,
) -> tuple[int, Endpoint]:
    """Number of failed calls and the endpoint, under a breaker that watches the address."""

    async def run() -> tuple[int, Endpoint]:
        breaker = Breaker()
        endpoint = Endpoint(settings(address), sleep=no_sleep, breaker=breaker)

        async def work() -> int:
            failed = 0
            for number in range(calls):
                body = {**BODY, "messages": [{"role": "user", "content": str(number)}]}
                try:
                    await endpoint.post("/chat/completions", body, as_object)
                except ModelError:
                    failed += 1
                    # The breaker cancels the work between two calls.
                    await asyncio.sleep(0)

            return failed

        try:
            watched = options or {address: "llm.base_url"}
            return await breaker.run(work(), watched, most, roles), endpoint
        finally:
            await endpoint.aclose()

    return run_loop(run())


def run_loop(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_a_refused_first_connection_ends_the_work_at_once() -> None:
    address = free_address()
    with pytest.raises(UserError, match="connection refused by") as error:
        kept(address, calls=3)

    assert error.value.message.startswith(f"llm.base_url={address}: ")
    hint = "check the URL, and that the server is running:  llm.base_url=…"
    assert error.value.hints == (hint, CONTINUES)


def test_temporary_failure_of_the_first_connection_is_left_to_the_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def try_connection(address: str) -> Setback:
        return Setback("no connection within 5 s", FaultKind.DOWN)

    monkeypatch.setattr("memeval.llm.breaker.try_connection", try_connection)
    with ScriptedEndpoint() as endpoint:
        failed, _ = kept(endpoint.base_url, calls=3)
        assert failed == 0 and endpoint.count() == 3


def test_a_connection_that_is_never_made_names_its_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(host: str, port: int) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", never)
    setback = run_loop(try_connection("http://localhost:1", timeout_s=0.01))
    assert setback == Setback("no connection within 0.01 s", FaultKind.DOWN)


class PlainServer(LoopbackServer):
    """Hangs up on whatever is not HTTP, such as a TLS handshake."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        raise AssertionError("unreachable")

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.read(2000)).startswith(b"GET / HTTP/1.1\r\n"):
            writer.write(f"HTTP/1.1 {self.status} Of The Test\r\n\r\n".encode())

        writer.close()


def test_a_url_with_https_at_a_server_without_tls_ends_the_work() -> None:
    """The handshake only looks like a reset connection, which is retried."""
    with PlainServer(404) as server, pytest.raises(UserError, match="speaks plain HTTP") as error:
        kept(f"https://127.0.0.1:{server.port}/v1", calls=1)

    assert error.value.hints[0].startswith("begin the URL with http://")


def test_a_server_that_may_have_tls_is_left_to_the_calls() -> None:
    with PlainServer(400) as server:
        assert run_loop(try_connection(f"https://127.0.0.1:{server.port}/v1")) is None


class RefusingProxy(LoopbackServer):
    """A proxy that refuses every request with a status."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        return await send(writer, self.status, b"<html>")


@pytest.mark.parametrize(
    ("variable", "proxy", "message"),
    [
        ("https_proxy", "locked", "the proxy replied 407: "),
        ("http_proxy", "locked", "HTTP 407, the proxy refused the login"),
        ("https_proxy", "alone", "the proxy can't connect to api.invalid: 503"),
        ("http_proxy", "alone", "HTTP 503 through the proxy http://127.0.0.1"),
        ("https_proxy", "absent", "connection refused by the proxy 127.0.0.1"),
        ("http_proxy", "socks5://localhost", "the proxy socks5://localhost is not an HTTP proxy"),
    ],
)
def test_a_wrong_proxy_is_not_taken_for_the_endpoint(
    variable: str, proxy: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RefusingProxy(407) as locked, RefusingProxy(503) as alone:
        proxies = {"locked": locked.address, "alone": alone.address, "absent": free_address()}
        monkeypatch.setenv(variable, proxies.get(proxy, proxy))
        with pytest.raises(UserError, match=message) as error:
            kept(f"{variable.partition('_')[0]}://api.invalid/v1", calls=3)

    assert "check the environment's proxy" in error.value.hints[0]


def test_endpoint_that_is_called_later_is_probed_with_the_first_call() -> None:
    with ScriptedEndpoint() as endpoint:
        judge = free_address()
        both = {endpoint.base_url: "llm.base_url", judge: "llm.judge.base_url"}
        with pytest.raises(UserError, match=r"^llm.judge.base_url=.*connection refused"):
            kept(endpoint.base_url, calls=3, options=both)


@pytest.mark.parametrize(
    ("fault", "message", "hint"),
    [
        ("unauthorised", "the key was refused", "is set and correct:  llm.api_key_env"),
        ("not_found", "unknown URL or model", "(most end in /v1):  llm.model"),
        ("quota", "insufficient_quota", "use another key or model"),
    ],
)
def test_permanent_error_on_the_first_call_ends_the_work(
    fault: str, message: str, hint: str
) -> None:
    with ScriptedEndpoint(faults=Faults({fault: 1.0})) as endpoint:
        with pytest.raises(UserError, match=message) as error:
            kept(endpoint.base_url, calls=30)

        # Another call may already be under way.
        assert endpoint.count() <= 2
    assert any(hint in line for line in error.value.hints)


@pytest.mark.parametrize(
    "error",
    [
        {"code": 402, "message": "Insufficient Balance"},
        {"code": 500, "message": "no credit", "type": "insufficient_quota"},
    ],
)
def test_hint_for_a_used_up_quota_is_the_same_under_any_status(error: dict[str, Any]) -> None:
    with (
        ScriptedEndpoint(lambda _: {"error": error}) as endpoint,
        pytest.raises(UserError, match=error["message"]) as raised,
    ):
        kept(endpoint.base_url, calls=3)

    assert "use another key or model" in raised.value.hints[0]


def test_permanent_error_after_an_answer_fails_its_call_only() -> None:
    """The same key and model have worked, so it may be the request."""
    with ScriptedEndpoint(faults=Faults({"not_found": 0.3}, seed=1)) as endpoint:
        failed, called = kept(endpoint.base_url, calls=30)
        assert failed == called.load.failures > 3


def test_refused_key_is_reported_even_if_the_work_ended_first() -> None:
    with ScriptedEndpoint(faults=Faults({"unauthorised": 1.0})) as endpoint:

        async def run() -> None:
            breaker = Breaker()
            client = Endpoint(settings(endpoint.base_url), sleep=no_sleep, breaker=breaker)

            async def work() -> str:
                with suppress(ModelError):
                    await client.post("/chat/completions", BODY, as_object)

                return "ended without another call"

            try:
                await breaker.run(work(), {endpoint.base_url: "llm.base_url"}, 20)
            finally:
                await client.aclose()

        with pytest.raises(UserError, match="the key was refused"):
            run_loop(run())


def test_hint_names_the_settings_of_the_called_model() -> None:
    """The judge's model may share its URL with the model of the answers."""
    with ScriptedEndpoint(faults=Faults({"not_found": 1.0})) as endpoint:
        roles = {
            f"{endpoint.base_url} another": "llm",
            f"{endpoint.base_url} {BODY['model']}": "llm.judge",
        }
        with pytest.raises(UserError) as error:
            kept(endpoint.base_url, calls=3, roles=roles)

    assert "llm.judge.model=…" in error.value.hints[0]
    assert "llm.base_url=…" in error.value.hints[0]


def test_only_consecutive_failures_stop_the_work() -> None:
    with ScriptedEndpoint(faults=Faults({"bad_request": 1.0})) as endpoint:
        with pytest.raises(WorldError, match="stopped: 5 calls in a row failed"):
            kept(endpoint.base_url, calls=30, most=5)

        assert 5 <= endpoint.count() <= 6
        with pytest.raises(WorldError, match="stopped: 1 call in a row failed"):
            kept(endpoint.base_url, calls=30, most=1)

        failed, called = kept(endpoint.base_url, calls=30, most=None)
        assert failed == called.load.failures == 30

    with ScriptedEndpoint(faults=Faults({"bad_request": 0.5})) as endpoint:
        failed, _ = kept(endpoint.base_url, calls=60, most=20)
        assert 10 < failed < 50


@pytest.mark.slow
def test_retries_are_counted() -> None:
    with ScriptedEndpoint(faults=Faults({"rate_limit": 0.5})) as endpoint:
        _, called = kept(endpoint.base_url, calls=20)
        assert called.load.retries == called.load.waits > 0
