"""The latency of a request at the endpoint, and the line that names the bottleneck."""

from __future__ import annotations

import asyncio
import re
import threading
import time

import pytest
from doubles.endpoint import ScriptedEndpoint

from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.load import Load, busy_line

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
LATENCY_S, BUSY_S = 0.05, 0.25


def shares(load: Load) -> list[int]:
    """Use of one slot and of one processor, in percent."""
    return [int(share) for share in re.findall(r"(\d+) %", busy_line(load) or "")]


async def post_while_busy(
    server: ScriptedEndpoint, may_reply: threading.Event
) -> tuple[float, Load]:
    """The latency of a call whose reply arrives while the event loop computes something else."""
    endpoint = Endpoint(EndpointSettings(server.base_url, "key", 4, 60.0, 0))

    async def compute() -> None:
        while server.count() < 2:  # noqa: ASYNC110 - the server counts in another thread
            await asyncio.sleep(0.001)

        may_reply.set()
        while server.last_at is None:
            pass

        # Processor time: a reply does not wait for us while the whole machine is paused.
        until = time.thread_time() + BUSY_S
        while time.thread_time() < until:
            pass

    try:
        may_reply.set()
        await endpoint.post("/chat/completions", BODY, as_object)  # opens the connection
        may_reply.clear()
        while server.last_at is None:  # noqa: ASYNC110 - it is noted after the reply is sent
            await asyncio.sleep(0.001)

        endpoint.load, server.last_at = Load(slots=1), None
        reply, _ = await asyncio.gather(
            endpoint.post("/chat/completions", BODY, as_object), compute()
        )
        return reply.latency_s, endpoint.load
    finally:
        await endpoint.aclose()


def test_latency_excludes_the_wait_for_our_event_loop() -> None:
    may_reply = threading.Event()

    def reply(_: object) -> str:
        assert may_reply.wait(60)
        return "hello"

    with ScriptedEndpoint(reply, latency_s=LATENCY_S) as server:
        latency_s, load = asyncio.run(post_while_busy(server, may_reply))

    assert load.began is not None
    took_s = load.ended - load.began
    assert LATENCY_S * 0.8 <= latency_s <= took_s - 0.8 * BUSY_S
    assert load.busy_s == pytest.approx(latency_s)
    # The endpoint used a part of the single slot's time; our processor used the rest.
    assert shares(load)[0] == pytest.approx(100 * latency_s / took_s, abs=1)


def test_fast_reply_has_a_latency_above_zero() -> None:
    async def latencies(base_url: str) -> list[float]:
        endpoint = Endpoint(EndpointSettings(base_url, "key", 4, 5.0, 0))
        try:
            replies = [await endpoint.post("/chat/completions", BODY, as_object) for _ in range(40)]
        finally:
            await endpoint.aclose()

        return [reply.latency_s for reply in replies]

    with ScriptedEndpoint() as server:
        assert min(asyncio.run(latencies(server.base_url))) > 0


def test_work_of_other_threads_counts_as_processor_use() -> None:
    def compute() -> None:
        until = time.thread_time() + BUSY_S
        while time.thread_time() < until:
            pass

    async def call() -> Load:
        load = Load(slots=1)
        async with load.calling():
            await asyncio.to_thread(compute)

        return load

    load = asyncio.run(call())
    assert load.worked_s >= BUSY_S
    assert 0 < shares(load)[1] <= 100


@pytest.mark.parametrize(
    ("busy_s", "worked_s", "line"),
    [
        (
            310.0,
            2.0,
            "97 % of the 32 request slots in use, memeval's CPU 20 %: "
            "the endpoint is the bottleneck",
        ),
        (
            160.0,
            9.7,
            "50 % of the 32 request slots in use, memeval's CPU 97 %: "
            "memeval's CPU is the bottleneck",
        ),
        (
            331.0,
            1.0,
            "100 % of the 32 request slots in use, memeval's CPU 10 %: "
            "the endpoint is the bottleneck",
        ),
        (
            64.0,
            1.0,
            "20 % of the 32 request slots in use, memeval's CPU 10 %: neither is the bottleneck",
        ),
    ],
)
def test_busy_line_names_the_bottleneck(busy_s: float, worked_s: float, line: str) -> None:
    load = Load(slots=32, busy_s=busy_s, began=5.0, ended=15.0, worked_s=worked_s)
    assert busy_line(load) == line
    load.url = "http://one"
    assert busy_line(load) == line.replace("request slots", "request slots at http://one")
    load.slots = 1
    assert "the 1 request slot at http://one in use" in str(busy_line(load))


def test_busy_line_counts_the_retries_that_leave_slots_and_processor_idle() -> None:
    load = Load(slots=16, busy_s=9.6, began=0.0, ended=60.0, worked_s=0.6, retries=1590, waits=1)
    assert (busy_line(load) or "").endswith(": neither is the bottleneck; 1,590 retries (429: 1)")


def test_busy_line_is_none_without_a_call_and_without_a_process_that_is_left() -> None:
    assert busy_line(Load(slots=32)) is None
    assert busy_line(Load(slots=0, busy_s=4.0, began=5.0, ended=15.0)) is None
