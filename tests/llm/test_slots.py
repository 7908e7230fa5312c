"""The request slots at an endpoint: one limit for all tasks, loops and threads of a process, which
has its part of the total limit.
"""

from __future__ import annotations

import asyncio
import threading

import pytest
from doubles.endpoint import ScriptedEndpoint

from memeval.errors import UserError
from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.slots import Slot, Slots, slots_at, slots_of_process


async def crowd(slots: list[Slots], each: int) -> int:
    """Lets many enter at the same time; returns the largest number inside."""
    inside = most = 0

    async def visit(one: Slots) -> None:
        nonlocal inside, most
        async with Slot(one) as slot:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1
            await slot.release_early()

    await asyncio.gather(*(visit(one) for one in slots for _ in range(each)))
    return most


def slots_with(limit: int) -> Slots:
    slots = Slots()
    slots.limit("an endpoint", limit)
    return slots


@pytest.mark.parametrize(("limit", "processes"), [(64, 2), (5, 2), (64, 3), (16, 6)])
def test_the_parts_of_a_limit_add_up_to_it(limit: int, processes: int) -> None:
    parts = [slots_of_process(limit, processes, "", position=at) for at in range(processes)]
    assert sum(parts) == limit and max(parts) - min(parts) <= 1
    assert slots_of_process(limit, processes, "") == min(parts)


def test_concurrent_holders_never_exceed_the_limit() -> None:
    slots = slots_with(5)
    assert asyncio.run(crowd([slots], 50)) == 5
    assert asyncio.run(crowd([slots], 50)) == 5, "on another loop as well"


def test_waiting_call_is_sent_before_the_previous_reply_is_processed() -> None:
    order = []

    async def visit(slots: Slots, name: str) -> None:
        async with Slot(slots) as slot:
            order.append(f"{name} sends")
            await asyncio.sleep(0.01)
            await slot.release_early()
            order.append(f"{name} works")

    async def scene() -> None:
        slots = slots_with(1)
        await asyncio.gather(*(visit(slots, name) for name in "abc"))

    asyncio.run(scene())
    assert order == ["a sends", "b sends", "a works", "c sends", "b works", "c works"]


def test_lowest_limit_holds_for_all_endpoints_at_one_url() -> None:
    slots = slots_with(5)
    slots.limit("another", 3)
    assert asyncio.run(crowd([slots], 50)) == 3
    slots.leave("another")
    assert asyncio.run(crowd([slots], 50)) == 5, "the limit of a closed endpoint no longer applies"
    slots.limit("an endpoint", 2)
    assert asyncio.run(crowd([slots], 50)) == 2


def test_waiting_call_continues_when_the_lowest_limit_is_removed() -> None:
    async def scene() -> None:
        slots = slots_with(2)
        slots.limit("another", 1)
        async with Slot(slots):
            waiting = asyncio.create_task(slots.acquire())
            await asyncio.sleep(0)
            assert not waiting.done()
            slots.leave("another")
            await asyncio.wait_for(waiting, 5)
            slots.release()

    asyncio.run(scene())


@pytest.mark.parametrize(("address", "key"), [("another", "key"), ("address", "another")])
def test_another_url_or_key_has_its_own_slots(address: str, key: str) -> None:
    one, other = slots_at("address", "key"), slots_at(address, key)
    assert slots_at("address", "key") is one
    one.limit("an endpoint", 2)
    other.limit("another", 3)
    assert asyncio.run(crowd([one, other], 20)) == 5


def test_cancelled_holders_and_waiters_release_their_slots() -> None:
    slots = slots_with(2)

    async def stay() -> None:
        async with Slot(slots):
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


def test_waiter_cancelled_while_it_gets_a_slot_passes_it_on() -> None:
    slots = slots_with(1)

    async def scene() -> None:
        await slots.acquire()
        doomed, heir = (asyncio.create_task(slots.acquire()) for _ in range(2))
        await asyncio.sleep(0)
        slots.release()
        doomed.cancel()
        await asyncio.wait_for(heir, 5)
        slots.release()
        assert doomed.cancelled()

    asyncio.run(scene())
    assert asyncio.run(crowd([slots], 9)) == 1


def test_threads_with_loops_of_their_own_share_the_slots() -> None:
    with ScriptedEndpoint(latency_s=0.005) as server:

        async def ask() -> None:
            settings = EndpointSettings(server.base_url, "key", 3, 10.0, 0)
            endpoint = Endpoint(settings, slots=slots_at(server.base_url, "key"))
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


def test_fewer_slots_than_processes_are_refused_with_a_hint() -> None:
    with pytest.raises(UserError, match="4 processes can't share max_concurrency=3") as refusal:
        slots_of_process(3, 4, "http://host/v1")
    assert "hydra.launcher.n_jobs=3" in refusal.value.hints[0]
