"""Retries: what is retried, how long the waits are, and when they end.

The clock is injected; nothing sleeps.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import pytest
from doubles.endpoint import Faults, ScriptedEndpoint
from doubles.loopback import LoopbackServer, Request, reply_head
from ports import free_port

from memeval.errors import ModelError
from memeval.llm.budget import Budget, SpendingLimits
from memeval.llm.endpoint import UNSOUND_TRIES, Endpoint, EndpointReply, EndpointSettings, as_object
from memeval.llm.faults import FaultKind, Setback, connection_setback, unsound_setback
from memeval.llm.metering import Ledger, metered
from memeval.llm.outage import FIRST_WAIT_S, LONGEST_WAIT_S, Backoff, Outage
from memeval.llm.reply.body import CutReplyError, UnsoundReplyError
from memeval.llm.reply.chat import read_chat
from memeval.llm.retry_after import retry_after

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
PATIENCE_S = 300.0
Serve = Callable[..., ScriptedEndpoint]


class Time:
    """A clock that advances only by waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def post(
    address: str,
    time: Time,
    *,
    patience_s: float = PATIENCE_S,
    max_retries: int | None = None,
    timeout_s: float = 60.0,
    most_bytes: int = 2**20,
    ledger: Ledger | None = None,
    said: list[str] | None = None,
    bodies: list[Mapping[str, Any]] | None = None,
    read: Callable[[Mapping[str, Any]], Any] = as_object,
    budget: Budget | None = None,
) -> list[EndpointReply[Any]]:
    """The replies to bodies that are sent concurrently; raises the first error."""

    async def all_of_them() -> list[EndpointReply[Any]]:
        settings = EndpointSettings(address, "key", 16, timeout_s, patience_s, max_retries)
        endpoint = Endpoint(
            settings,
            sleep=time.sleep,
            clock=time,
            say=None if said is None else said.append,
            budget=budget,
        )
        try:
            with metered(ledger or Ledger()):
                calls = [
                    endpoint.post("/chat/completions", body, read, most_bytes=most_bytes)
                    for body in bodies or [BODY]
                ]
                outcomes = await asyncio.gather(*calls, return_exceptions=True)

            errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
            if errors:
                raise errors[0]

            return [outcome for outcome in outcomes if isinstance(outcome, EndpointReply)]
        finally:
            await endpoint.aclose()

    return asyncio.run(all_of_them())


def refused(server: LoopbackServer, time: Time, **options: Any) -> str:
    with pytest.raises(ModelError) as error:
        post(f"{server.address}/v1", time, **options)
    return str(error.value)


@pytest.fixture(params=[(), ("/chat/completions",)], ids=["aiohttp", "openai"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sends calls directly over aiohttp, and through openai's client."""
    monkeypatch.setattr("memeval.llm.endpoint.BY_CLIENT", request.param)


@pytest.fixture
def serve() -> Serve:
    return lambda **faults: ScriptedEndpoint(lambda body: "hi", faults=Faults(**faults))


@pytest.mark.parametrize(
    "kind",
    ["rate_limit", "server_error", "drop", "truncate", "html", "no_body", "error_body"],
)
def test_transient_faults_are_retried_for_the_whole_patience(serve: Serve, kind: str) -> None:
    time = Time()
    with serve(shares={kind: 1.0}) as server:
        message = refused(server, time, read=lambda sent: read_chat(sent, []))
        tries = server.count()
    assert re.search(r"\(tried \d+ times over 300 s\)$", message)
    assert time.now == pytest.approx(PATIENCE_S)
    assert tries > 6
    assert all(0 <= wait <= LONGEST_WAIT_S for wait in time.waits)


@pytest.mark.parametrize("kind", ["malformed", "no_choices", "empty", "null"])
def test_an_unsound_reply_is_tried_a_bounded_number_of_times(serve: Serve, kind: str) -> None:
    time = Time()
    with serve(shares={kind: 1.0}) as server:
        message = refused(server, time, read=lambda sent: read_chat(sent, []))
        assert server.count() == UNSOUND_TRIES
    assert "tried 6 times" in message
    assert 20 < time.now < 60, "a model that is odd for 20 s costs nothing"


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("bad_request", "HTTP 400: bad_request"),
        ("unauthorised", "HTTP 401, the key was refused: unauthorised"),
        (
            "not_found",
            "HTTP 404, unknown URL or model: not_found",
        ),
        ("quota", "HTTP 429, insufficient_quota: You exceeded"),
    ],
)
def test_permanent_errors_are_not_retried(serve: Serve, kind: str, message: str) -> None:
    time = Time()
    with serve(shares={kind: 1.0}) as server:
        assert message in refused(server, time)
        assert server.count() == 1
    assert time.waits == []


def test_max_retries_still_bounds_the_tries(serve: Serve) -> None:
    with serve(shares={"server_error": 1.0}) as server:
        assert "tried 3 times" in refused(server, Time(), max_retries=2)
        assert server.count() == 3


def test_no_patience_means_one_try(serve: Serve) -> None:
    with serve(shares={"empty": 1.0}) as server:
        refused(server, Time(), patience_s=0, read=lambda sent: read_chat(sent, []))
        assert server.count() == 1


@pytest.mark.usefixtures("_either_way")
def test_retry_after_is_honoured(serve: Serve) -> None:
    time = Time()
    with serve(shares={"rate_limit": 1.0}, retry_after_s=7.0) as server:
        refused(server, time, max_retries=2)
    assert len(time.waits) == 2
    assert all(7.0 <= wait <= 7.0 + FIRST_WAIT_S for wait in time.waits)


def test_a_retry_after_beyond_the_patience_is_bounded(serve: Serve) -> None:
    time = Time()
    with serve(shares={"rate_limit": 1.0}, retry_after_s=86_400.0) as server:
        refused(server, time, max_retries=1)
    assert len(time.waits) == 1
    assert LONGEST_WAIT_S <= time.waits[0] <= LONGEST_WAIT_S + FIRST_WAIT_S


def test_a_retry_after_within_the_patience_is_waited_for(serve: Serve) -> None:
    time = Time()
    with serve(shares={"rate_limit": 1.0}, retry_after_s=200.0) as server:
        refused(server, time, max_retries=1)
    assert 200.0 <= time.waits[0] <= 201.0


def test_back_off_is_bounded_by_doubling_waits_and_jittered(serve: Serve) -> None:
    time = Time()
    with serve(shares={"server_error": 1.0}) as server:
        refused(server, time, max_retries=4)
    assert all(wait <= FIRST_WAIT_S * 2**attempt for attempt, wait in enumerate(time.waits))
    assert len(set(time.waits)) == len(time.waits)


def test_waits_are_recorded(serve: Serve) -> None:
    time, ledger = Time(), Ledger()
    with serve(shares={"rate_limit": 0.6}, seed=2) as server:
        replies = [
            post(server.base_url, time, ledger=ledger, bodies=[{**BODY, "n": number}])[0]
            for number in range(20)
        ]
    assert sum(reply.wait_s for reply in replies) == pytest.approx(sum(time.waits))
    assert sum(time.waits) > 0


class Announcing(ScriptedEndpoint):
    """Signals that a request has arrived."""

    def __init__(self, latency_s: float) -> None:
        super().__init__(lambda body: "hi", latency_s=latency_s)
        self.arrived = threading.Event()

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        self.arrived.set()
        return await super().respond(request, writer)


@pytest.mark.usefixtures("_either_way")
def test_reply_that_arrived_while_the_loop_was_blocked_is_read() -> None:
    async def ask(address: str) -> EndpointReply[Any]:
        endpoint = Endpoint(EndpointSettings(address, "key", 1, timeout_s=0.5, patience_s=5.0))
        asking = asyncio.create_task(endpoint.post("/chat/completions", BODY, as_object))
        await asyncio.to_thread(server.arrived.wait)
        # As a database that does not answer would block it.
        hold_up()
        try:
            return await asking
        finally:
            await endpoint.aclose()

    def hold_up() -> None:
        time.sleep(1.0)

    # The whole machine may stall before the loop is blocked, which also ends a try.
    for _ in range(3):
        with Announcing(latency_s=0.2) as server:
            reply = asyncio.run(ask(server.base_url))
            if reply.setback is None:
                break

    assert reply.setback is None
    assert server.count() == 1


# Outages


def test_in_an_outage_all_pause_and_one_probes(serve: Serve) -> None:
    time, said = Time(), list[str]()
    bodies = [{**BODY, "n": number} for number in range(40)]
    with serve(outage=(10, 30)) as server:
        replies = post(server.base_url, time, bodies=bodies, said=said)
        assert len(replies) == 40
        assert server.count() == 40 + 20
    # 16 slots: the calls that were under way when the outage began have failed. After that, one
    # call at a time is tried, each after its own wait.
    assert 20 - 16 <= len(time.waits) <= 20
    assert time.now > 1.0


def test_the_next_outage_is_probed_after_one_that_an_answer_ended() -> None:
    async def play() -> list[bool]:
        time, probes = Time(), []
        outage = Outage("a", 300.0, clock=time, sleep=time.sleep, backoff=Backoff(), say=None)
        for is_answered in (True, False):
            limited = Setback("HTTP 429", FaultKind.LIMITED, retry_after_s=9.0)
            outage.note_failure(limited, sent_at=time.now, probe=False)
            entering = asyncio.create_task(outage.enter())
            # The first caller pauses, and an answer to an earlier call opens the gate.
            await asyncio.sleep(0)
            if is_answered:
                outage.note_success()

            for _ in range(9):
                await asyncio.sleep(0)

            probes.append(entering.done() and entering.result())

        return probes

    assert asyncio.run(play()) == [False, True]


@pytest.mark.parametrize(("answers", "expected"), [(0, []), (1, [0]), (2, [0, 1]), (5, [0, 1, 2])])
def test_each_answer_ends_the_back_off_of_the_caller_that_waits_longest(
    answers: int, expected: list[int]
) -> None:
    ended: list[int] = []

    async def sleep(seconds: float) -> None:
        await asyncio.Event().wait()

    async def back_off(outage: Outage, number: int) -> None:
        await outage.back_off(60.0)
        ended.append(number)

    async def work() -> None:
        outage = Outage("here", 300.0, clock=Time(), sleep=sleep, backoff=Backoff(), say=None)
        callers = [asyncio.ensure_future(back_off(outage, number)) for number in range(3)]
        await asyncio.sleep(0)
        for _ in range(answers):
            outage.note_success()
        for _ in range(10):
            await asyncio.sleep(0)
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)

    asyncio.run(work())
    assert ended == expected


def test_answer_ends_the_back_off_after_429_unless_the_endpoint_named_a_time() -> None:
    endpoint = Endpoint(EndpointSettings("http://localhost:9", "key", 1, 5.0, 5.0))
    limited = Setback("HTTP 429", FaultKind.LIMITED)
    assert endpoint.may_end_early(limited)
    assert not endpoint.may_end_early(Setback("HTTP 429", FaultKind.LIMITED, retry_after_s=9.0))
    endpoint = Endpoint(EndpointSettings("http://localhost:9", "key", 1, 5.0, 5.0, max_retries=4))
    assert not endpoint.may_end_early(limited)


def test_calls_waiting_for_a_slot_of_a_rate_limited_endpoint_are_not_sent(
    serve: Serve,
) -> None:
    sent = []

    class Counting(Time):
        async def sleep(self, seconds: float) -> None:
            sent.append(server.count())
            await super().sleep(seconds)

    bodies = [{**BODY, "n": number} for number in range(40)]
    with serve(shares={"rate_limit": 1.0}) as server:
        refused(server, Counting(), bodies=bodies, max_retries=1)
    assert sent[0] <= 16, "those under way when the first reply came"


def test_outage_longer_than_the_patience_ends_all_calls_together(serve: Serve) -> None:
    time = Time()
    bodies = [{**BODY, "n": number} for number in range(60)]

    async def outcomes(address: str) -> list[Any]:
        endpoint = Endpoint(
            EndpointSettings(address, "key", 16, 60.0, PATIENCE_S), sleep=time.sleep, clock=time
        )
        try:
            return await asyncio.gather(
                *(endpoint.post("/c", body, as_object) for body in bodies), return_exceptions=True
            )
        finally:
            await endpoint.aclose()

    with serve(shares={"server_error": 1.0}) as server:
        errors = asyncio.run(outcomes(server.base_url))
        assert server.count() < 60 + 16 + 40
    assert all(isinstance(error, ModelError) and "HTTP 503" in str(error) for error in errors)
    assert PATIENCE_S <= time.now < PATIENCE_S + 1


@pytest.mark.parametrize("kind", ["html", "no_body", "error_body"])
def test_gateway_errors_are_an_outage_and_use_no_tokens_of_the_budget(
    serve: Serve, kind: str
) -> None:
    time, said = Time(), list[str]()
    bodies = [{**BODY, "n": number} for number in range(60)]
    budget = Budget(SpendingLimits(tokens=100_000))
    with serve(shares={kind: 1.0}) as server:
        with pytest.raises(ModelError):
            post(
                server.base_url,
                time,
                bodies=bodies,
                said=said,
                budget=budget,
                read=lambda sent: read_chat(sent, []),
            )

        # The calls under way, those that probe one at a time, and those that then find out for
        # themselves.
        assert server.count() < 60 + 16 + 40

    assert budget.spent.tokens == 0
    assert time.now == pytest.approx(PATIENCE_S)
    assert said and said[0].startswith(f"waiting for {server.base_url}: ")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error": "overloaded"}', FaultKind.DOWN),
        (b'{"error": {"message": "slow down", "code": 429}}', FaultKind.LIMITED),
        (b'{"error": {"message": "no such model", "code": 404}}', FaultKind.DEAD),
        (b'{"error": {"message": "x", "code": "insufficient_quota"}}', FaultKind.DEAD),
        (b'[{"error": {"message": "x", "code": 503}}]', FaultKind.DOWN),
        (b'{"choices": [], "error": {"message": "x"}}', FaultKind.DOWN),
        (
            b'{"choices": [{"finish_reason": "error"}], "error": {"message": "x"}}',
            FaultKind.UNSOUND,
        ),
        (b'{"error": null}', FaultKind.UNSOUND),
        (b'{"never clo', FaultKind.UNSOUND),
        (b"  ", FaultKind.DOWN),
        (b"<html>", FaultKind.DOWN),
    ],
)
def test_error_under_status_200_is_classified_by_its_code(body: bytes, kind: FaultKind) -> None:
    assert unsound_setback(UnsoundReplyError("no choices"), {}, body).kind is kind


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_wait_is_shown_with_its_reason_and_its_end(serve: Serve, is_cut: bool) -> None:
    def read(sent: Mapping[str, Any]) -> Any:
        if is_cut:
            raise CutReplyError("the reply is cut")

        return sent

    time, said = Time(), list[str]()
    expected = pytest.raises(CutReplyError) if is_cut else nullcontext()
    with serve(outage=(0, 12)) as server:
        with expected:
            post(server.base_url, time, said=said, read=read)

        address = re.escape(server.base_url)
    assert re.fullmatch(
        rf"waiting for {address}: HTTP 503: server_error for \d+ s of 300 s", said[0]
    )
    assert re.fullmatch(rf"{address} answers again after \d+ s", said[-1])
    assert len(said) <= 2 + time.now / 10


@pytest.mark.parametrize("kind", ["rate_limit", "server_error"])
def test_a_long_wait_is_shown_as_it_begins(serve: Serve, kind: str) -> None:
    time, said = Time(), list[str]()
    with serve(shares={kind: 1.0}, retry_after_s=60.0) as server:
        refused(server, time, said=said, max_retries=1)

    if kind == "rate_limit":
        assert time.now > 59 and said[0].endswith("slow down for 0 s of 300 s")
    else:
        assert time.now < 2 and not said


def test_mix_of_all_transient_faults_loses_no_call(serve: Serve) -> None:
    kinds = (
        "rate_limit",
        "server_error",
        "drop",
        "truncate",
        "malformed",
        "html",
        "no_choices",
        "empty",
        "null",
        "no_body",
        "error_body",
    )
    time = Time()
    bodies = [{**BODY, "n": number} for number in range(100)]
    with serve(shares=dict.fromkeys(kinds, 0.03), seed=4) as server:
        replies = post(server.base_url, time, bodies=bodies, read=lambda sent: read_chat(sent, []))
        assert set(server.faulted) == set(kinds)
    assert [reply.value.text for reply in replies] == ["hi"] * 100


@pytest.mark.usefixtures("_either_way")
def test_cancellation_ends_waits_immediately(serve: Serve) -> None:
    async def interrupted(address: str) -> None:
        endpoint = Endpoint(EndpointSettings(address, "key", 4, 60.0, PATIENCE_S))
        calls = [
            asyncio.create_task(endpoint.post("/c", {**BODY, "n": number}, as_object))
            for number in range(12)
        ]
        async with asyncio.timeout(PATIENCE_S):
            while not server.requests:  # noqa: ASYNC110 - the server has no event
                await asyncio.sleep(0.05)

        for call in calls:
            call.cancel()
        done, pending = await asyncio.wait(calls, timeout=20)
        assert not pending and all(call.cancelled() for call in done)
        await endpoint.aclose()

    with serve(shares={"server_error": 1.0}) as server:
        asyncio.run(interrupted(server.base_url))


# The end of a try


@pytest.mark.usefixtures("_either_way")
def test_dripping_body_ends_with_the_timeout_of_the_try(serve: Serve) -> None:
    with serve(shares={"dripping": 1.0}, hang_s=3.0) as server:
        assert "no whole reply within 0.2 s" in refused(
            server, Time(), timeout_s=0.2, max_retries=0
        )


class Odd(LoopbackServer):
    """Replies to each request with the given bytes."""

    def __init__(self, *pieces: bytes, endless: bool = False) -> None:
        super().__init__()
        self.pieces, self.endless, self.asked = pieces, endless, 0

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        self.asked += 1
        for piece in self.pieces:
            writer.write(piece)
        while self.endless:
            writer.write(b" " * 65536)
            await writer.drain()
        await writer.drain()
        return False


@pytest.mark.parametrize("takes_accepted", [True, False])
def test_status_202_is_a_reply_only_if_the_contract_takes_it(takes_accepted: bool) -> None:
    async def post(address: str) -> Mapping[str, Any]:
        settings = EndpointSettings(address, "key", 1, 60.0, 0, takes_accepted=takes_accepted)
        endpoint = Endpoint(settings)
        try:
            return (await endpoint.post("/add", BODY, as_object)).value
        finally:
            await endpoint.aclose()

    with Odd(reply_head(202, 2, {}), b"{}") as server:
        if takes_accepted:
            assert asyncio.run(post(server.address)) == {}
        else:
            with pytest.raises(ModelError, match="HTTP 202: the request was only accepted"):
                asyncio.run(post(server.address))

        assert server.asked == 1


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("status", [200, 503])
def test_endless_body_is_not_read_whole(status: int) -> None:
    with Odd(reply_head(status, 2**40, {}), endless=True) as server:
        message = refused(server, Time(), max_retries=0)
    assert ("larger than 1 MiB" if status == 200 else "HTTP 503") in message


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}",), "the reply was cut off"),
        (
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",),
            "the reply was cut off",
        ),
        ((b"no HTTP at all\r\n\r\n",), "the reply is not valid HTTP"),
        ((), "connection reset"),
        ((reply_head(200, 2, {}) + b"[]",), "not a JSON object"),
        ((reply_head(200, 200_000, {}) + b"[" * 200_000,), "not JSON"),
        (
            (reply_head(307, 0, {"Location": "https://me:pw@elsewhere.example/v1/?key=k"}),),
            "redirects to https://elsewhere.example/v1/; nothing is sent there",
        ),
        (
            (reply_head(200, 4, {"Content-Encoding": "gzip"}) + b"abcd",),
            "the reply can't be decoded as its header Content-Encoding says",
        ),
    ],
)
def test_broken_http_replies_have_their_own_messages(
    pieces: tuple[bytes, ...], message: str
) -> None:
    with Odd(*pieces) as server:
        assert message in refused(server, Time(), max_retries=0)


@pytest.mark.usefixtures("_either_way")
def test_a_redirect_is_not_followed(serve: Serve) -> None:
    with serve() as elsewhere:
        with Odd(
            reply_head(307, 0, {"Location": f"{elsewhere.base_url}/chat/completions"})
        ) as server:
            refused(server, Time())
            assert server.asked == 1
        assert elsewhere.count() == 0


# Connections


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize(
    ("address", "message", "final"),
    [
        ("http://127.0.0.1:{port}/v1", "connection refused", True),
        ("http://nowhere.invalid/v1", "host name not found: nowhere.invalid", True),
    ],
)
def test_failed_connection_reports_its_cause(address: str, message: str, final: bool) -> None:
    time = Time()
    with pytest.raises(ModelError, match=message):
        post(address.format(port=free_port()), time)
    assert (time.now == 0) is final


class Plain(LoopbackServer):
    """Sends before it reads, and speaks no TLS."""

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        raise AssertionError("unreachable: nothing is read")

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ready\r\n")
        await writer.drain()
        await reader.read(2000)
        writer.close()


@pytest.mark.usefixtures("_either_way")
def test_server_without_tls_is_a_final_error() -> None:
    time = Time()
    with (
        Plain() as server,
        pytest.raises(ModelError, match=r"TLS: no secure connection to 127\.0\.0\.1: \D+$"),
    ):
        post(server.address.replace("http://", "https://"), time)
    assert time.now == 0


def chained(inner: BaseException) -> BaseException:
    """An error as the client raises it, with the cause inside."""
    try:
        try:
            raise inner
        except type(inner) as cause:
            raise RuntimeError("outer") from cause
    except RuntimeError as outer:
        return outer


@pytest.mark.parametrize(
    ("error", "message", "passing"),
    [
        (ConnectionRefusedError(111, "x"), "connection refused", True),
        (ConnectionResetError(104, "x"), "connection reset", True),
        (BrokenPipeError(32, "x"), "connection reset", True),
        (socket.gaierror(-2, "Name or service not known"), "host name not found: h", True),
        (
            ssl.SSLCertVerificationError(1, "certificate verify failed"),
            "TLS: the certificate of h was refused",
            True,
        ),
        (ssl.SSLError(1, "wrong version number"), "TLS: no secure connection to h", True),
        (ssl.SSLEOFError(8, "eof"), "connection reset during the TLS handshake", True),
        (OSError(101, "Network is unreachable"), "connection failed: Network is unreachable", True),
    ],
)
def test_cause_of_a_broken_connection_is_reported(
    error: BaseException, message: str, passing: bool
) -> None:
    setback = connection_setback(chained(error), "h")
    assert setback.message.startswith(message)
    assert setback.policy.retried is passing


# Retry-After


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 7 "}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "7s"}, 7.0),
        ({"retry-after": "6m0s"}, 360.0),
        ({"retry-after": "1h2m3s"}, 3723.0),
        ({"retry-after": "20ms"}, 0.02),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:20:07 GMT"}, 207.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:20:07"}, 207.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:07 GMT"}, 0.0),
        ({"x-ratelimit-reset-after": "12"}, 12.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "9" * 500}, None),
        ({"retry-after": "Thu, 99 Foo 99999 99:99:99 GMT"}, None),
        ({}, None),
    ],
)
def test_every_form_of_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=1000.0) == (None if seconds is None else pytest.approx(seconds))


def test_a_time_without_a_zone_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:20:07"}, now=1000.0) == 207.0
    finally:
        monkeypatch.undo()
        time.tzset()


def test_retry_after_as_a_unix_timestamp_is_read() -> None:
    assert retry_after({"retry-after": "1763800012"}, now=1763800000.0) == pytest.approx(12.0)


def test_retry_delay_in_the_body_is_read() -> None:
    assert retry_after({}, b'{"error": {"details": [{"retryDelay": "17s"}]}}') == 17.0
