"""After the first Ctrl-C, calls under way are finished and no new call begins."""

from __future__ import annotations

import asyncio

from doubles.endpoint import ScriptedEndpoint

from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.in_flight import InFlight, OtherProcess, in_flight

BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}


async def hold(flights: InFlight, until: asyncio.Event) -> str:
    async with flights.request():
        await until.wait()

    return "ended"


def test_finish_waits_for_open_requests_and_blocks_new_ones() -> None:
    async def play() -> None:
        flights, until = InFlight(), asyncio.Event()
        first = asyncio.create_task(hold(flights, until))
        await asyncio.sleep(0)
        finishing = asyncio.create_task(flights.finish(60))
        await asyncio.sleep(0)
        second = asyncio.create_task(hold(flights, until))
        await asyncio.sleep(0.1)
        assert not finishing.done()

        until.set()
        await finishing
        assert first.result() == "ended"
        assert not second.done()

        second.cancel()
        await asyncio.wait({second})
        assert flights.under_way == 0

        flights.reopen()
        assert await hold(flights, until) == "ended"

    asyncio.run(play())


def test_finish_part_blocks_only_requests_of_its_work() -> None:
    class Work:
        """A job that requests belong to."""

    async def play() -> None:
        flights, until, ending, other = InFlight(), asyncio.Event(), Work(), Work()

        async def hold_for(work: object) -> str:
            async with flights.request(work):
                await until.wait()

            return "ended"

        first = asyncio.create_task(hold_for(ending))
        await asyncio.sleep(0)
        finishing = asyncio.create_task(flights.finish_part(ending, 60))
        await asyncio.sleep(0)
        second, third = (asyncio.create_task(hold_for(work)) for work in (ending, other))
        await asyncio.sleep(0)
        until.set()
        await finishing
        assert (first.done(), second.done(), third.done()) == (True, False, True)

        second.cancel()
        await asyncio.wait({second})
        assert (flights.under_way, flights.lost) == (0, 0)

    asyncio.run(play())


def test_finish_waits_for_a_hanging_call_only_up_to_its_limit() -> None:
    async def play() -> None:
        flights = InFlight()
        held = asyncio.create_task(hold(flights, asyncio.Event()))
        await asyncio.sleep(0)
        await flights.finish(0.05)
        assert not held.done()
        held.cancel()

    asyncio.run(play())


def test_finish_waits_for_calls_of_other_processes() -> None:
    async def play() -> None:
        ended = asyncio.Event()

        async def finish(most_s: float) -> None:
            await asyncio.sleep(0.05)
            ended.set()

        flights = InFlight()
        flights.elsewhere.append(OtherProcess(finish))
        await flights.finish(60)
        assert ended.is_set()

    asyncio.run(play())


def test_endpoint_finishes_its_open_request_and_sends_no_other() -> None:
    async def play(address: str) -> None:
        settings = EndpointSettings(
            base_url=address, api_key="k", max_concurrency=1, timeout_s=5.0, patience_s=60.0
        )
        endpoint = Endpoint(settings)
        calls = [
            asyncio.create_task(endpoint.post("/chat/completions", BODY, as_object))
            for _ in range(2)
        ]
        while not in_flight.under_way:  # noqa: ASYNC110 - nothing announces a request
            await asyncio.sleep(0.005)

        await in_flight.finish(60)
        assert [call.done() for call in calls] == [True, False]

        calls[1].cancel()
        await asyncio.wait(calls)
        await endpoint.aclose()

    try:
        with ScriptedEndpoint(latency_s=0.05) as endpoint:
            asyncio.run(play(endpoint.base_url))
            assert endpoint.count() == 1
    finally:
        in_flight.reopen()
