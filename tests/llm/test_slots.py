"""The request slots at an endpoint: one limit over the tasks, loops and threads of a process, of
which each of several processes has its part.
"""

from __future__ import annotations

import asyncio
import threading

import pytest
from doubles.endpoint import ScriptedEndpoint

from memeval.errors import UserError
from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.slots import Slots, slots_of_process


async def crowd(slots: list[Slots], each: int) -> int:
    """Lets many enter at once; returns the most that were in at a time."""
    inside = most = 0

    async def visit(one: Slots) -> None:
        nonlocal inside, most
        async with one:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(visit(one) for one in slots for _ in range(each)))
    return most


def test_no_more_are_in_at_once_than_the_limit() -> None:
    slots = Slots("address", "key", 5)
    assert asyncio.run(crowd([slots], 50)) == 5
    assert asyncio.run(crowd([slots], 50)) == 5, "on another loop as well"
    slots.close()


def test_the_lower_limit_holds_for_all_who_ask_at_one_address() -> None:
    five, three = Slots("address", "key", 5), Slots("address", "key", 3)
    assert asyncio.run(crowd([five, three], 50)) == 3
    three.close()
    assert asyncio.run(crowd([five], 50)) == 5, "once its part is closed it binds nobody"
    five.lower(2)
    assert asyncio.run(crowd([five], 50)) == 2
    five.close()


def test_who_waits_goes_on_when_the_lowest_limit_is_gone() -> None:
    async def scene() -> None:
        two, one = Slots("address", "key", 2), Slots("address", "key", 1)
        async with two:
            waiting = asyncio.create_task(two.__aenter__())
            await asyncio.sleep(0)
            assert not waiting.done()
            one.close()
            await asyncio.wait_for(waiting, 5)
            await two.__aexit__(None, None, None)

        two.close()

    asyncio.run(scene())


@pytest.mark.parametrize(("address", "key"), [("another", "key"), ("address", "another")])
def test_another_address_or_key_has_slots_of_its_own(address: str, key: str) -> None:
    one, other = Slots("address", "key", 2), Slots(address, key, 3)
    assert asyncio.run(crowd([one, other], 20)) == 5
    one.close()
    other.close()


def test_who_is_cancelled_while_waiting_or_inside_leaves_no_slot_behind() -> None:
    slots = Slots("address", "key", 2)

    async def stay() -> None:
        async with slots:
            await asyncio.Event().wait()

    async def scene() -> None:
        for cancelled in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)):
            tasks = [asyncio.create_task(stay()) for _ in range(4)]
            await asyncio.sleep(0)
            for number in cancelled:
                tasks[number].cancel()
                await asyncio.sleep(0)
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(scene())
    assert asyncio.run(crowd([slots], 9)) == 2
    slots.close()


def test_who_is_cancelled_as_it_is_handed_a_slot_hands_it_on() -> None:
    slots = Slots("address", "key", 1)

    async def scene() -> None:
        await slots.__aenter__()
        doomed, heir = (asyncio.create_task(slots.__aenter__()) for _ in range(2))
        await asyncio.sleep(0)
        await slots.__aexit__(None, None, None)
        doomed.cancel()
        await asyncio.wait_for(heir, 5)
        await slots.__aexit__(None, None, None)
        assert doomed.cancelled()

    asyncio.run(scene())
    assert asyncio.run(crowd([slots], 9)) == 1
    slots.close()


def test_threads_with_loops_of_their_own_share_the_slots() -> None:
    with ScriptedEndpoint(latency_s=0.005) as server:

        async def ask() -> None:
            settings = EndpointSettings(server.base_url, "key", 3, 10.0, 0)
            slots = Slots(server.base_url, "key", 3)
            endpoint = Endpoint(settings, slots=slots)
            body = {"model": "m", "messages": [{"content": "who?"}]}
            await asyncio.gather(
                *(endpoint.post("/chat/completions", body, as_object) for _ in range(20))
            )
            await endpoint.aclose()

        threads = [threading.Thread(target=asyncio.run, args=(ask(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert server.peak == 3
        assert server.count() == 60


@pytest.mark.parametrize(("limit", "processes", "part"), [(16, 1, 16), (16, 3, 5), (2, 2, 1)])
def test_a_process_has_its_part_of_the_limit(limit: int, processes: int, part: int) -> None:
    assert slots_of_process(limit, processes, "http://host/v1") == part


def test_fewer_slots_than_processes_are_refused_with_the_way_out() -> None:
    with pytest.raises(UserError, match="4 processes can't share max_concurrency=3") as refusal:
        slots_of_process(3, 4, "http://host/v1")
    assert "hydra.launcher.n_jobs=3" in refusal.value.hints[0]
