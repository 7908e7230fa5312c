"""Retries: what is tried again, how long is waited, and where it ends. The clock is injected; nothing sleeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from memeval.errors import ModelError
from memeval.llm.endpoint import FIRST_WAIT_S, LONGEST_WAIT_S, Endpoint, EndpointSettings, Reply
from memeval.llm.metering import Ledger, metered
from memeval.testing.endpoint import Faults, ScriptedEndpoint

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


class Waits(list[float]):
    """A sleep that only takes note."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def post(
    server: ScriptedEndpoint, waits: Waits, *, retries: int = 6, ledger: Ledger | None = None, body: Mapping[str, Any] = BODY
) -> Reply:
    async def once() -> Reply:
        endpoint = Endpoint(EndpointSettings(server.base_url, "key", 4, 2.0, retries), sleep=waits)
        try:
            with metered(ledger or Ledger()):
                return await endpoint.post("/chat/completions", body)
        finally:
            await endpoint.aclose()

    return asyncio.run(once())


def refused(server: ScriptedEndpoint, waits: Waits, retries: int = 6) -> str:
    with pytest.raises(ModelError) as error:
        post(server, waits, retries=retries)
    return str(error.value)


@pytest.fixture
def serve() -> Callable[..., ScriptedEndpoint]:
    return lambda **faults: ScriptedEndpoint(lambda body: "hi", faults=Faults(**faults))


@pytest.mark.parametrize("kind", ["rate_limit", "server_error", "drop", "truncate"])
def test_what_never_passes_is_given_up_after_the_allowed_tries(serve: Callable[..., ScriptedEndpoint], kind: str) -> None:
    waits = Waits()
    with serve(shares={kind: 1.0}) as server:
        assert "tried 4 times" in refused(server, waits, retries=3)
        assert server.count() == 4
    assert len(waits) == 3
    assert all(0 <= wait <= LONGEST_WAIT_S for wait in waits)


@pytest.mark.parametrize(("kind", "told"), [("bad_request", "HTTP 400"), ("unauthorised", "HTTP 401"), ("malformed", "not JSON")])
def test_what_will_not_pass_is_not_tried_again(serve: Callable[..., ScriptedEndpoint], kind: str, told: str) -> None:
    waits = Waits()
    with serve(shares={kind: 1.0}) as server:
        assert told in refused(server, waits)
        assert server.count() == 1
    assert waits == []


def test_retry_after_is_honoured(serve: Callable[..., ScriptedEndpoint]) -> None:
    waits = Waits()
    with serve(shares={"rate_limit": 1.0}, retry_after_s=7.0) as server:
        refused(server, waits, retries=2)
    assert all(7.0 <= wait <= 7.0 + FIRST_WAIT_S for wait in waits)


def test_a_long_retry_after_is_bounded(serve: Callable[..., ScriptedEndpoint]) -> None:
    waits = Waits()
    with serve(shares={"rate_limit": 1.0}, retry_after_s=86_400.0) as server:
        refused(server, waits, retries=1)
    assert waits == [LONGEST_WAIT_S]


def test_back_off_grows_within_its_span_and_is_jittered(serve: Callable[..., ScriptedEndpoint]) -> None:
    waits = Waits()
    with serve(shares={"server_error": 1.0}) as server:
        refused(server, waits, retries=8)
    assert all(wait <= min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt) for attempt, wait in enumerate(waits))
    assert len(set(waits)) == len(waits)
    assert max(waits) > FIRST_WAIT_S


def test_waits_are_recorded(serve: Callable[..., ScriptedEndpoint]) -> None:
    waits, ledger = Waits(), Ledger()
    with serve(shares={"rate_limit": 0.6}, seed=2) as server:
        bodies = ({**BODY, "n": number} for number in range(20))
        replies = [post(server, waits, ledger=ledger, body=body) for body in bodies]
    assert sum(reply.wait_s for reply in replies) == pytest.approx(sum(waits))
    assert ledger.idle_s >= sum(waits) > 0
