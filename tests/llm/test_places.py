"""The places at an endpoint: one limit over tasks, loops, threads and processes, that a death gives
back.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.places import Places
from memeval.testing.endpoint import ScriptedEndpoint

WORKER = """
import asyncio, json, sys, time
from pathlib import Path
from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.places import Places

async def main(folder, url, limit, calls, name):
    settings = EndpointSettings(url, "key", int(limit), 60.0, 0)
    endpoint = Endpoint(settings, places=Places(Path(folder), url, "key", int(limit)))
    began = time.monotonic()
    bodies = [{"model": "m", "messages": [{"content": f"{name} {n}"}]} for n in range(int(calls))]
    await asyncio.gather(*(endpoint.post("/chat/completions", body, as_object) for body in bodies))
    await endpoint.aclose()
    print(json.dumps([began, time.monotonic()]))

asyncio.run(main(*sys.argv[1:]))
"""


def worker(
    folder: Path, server: ScriptedEndpoint, limit: int, calls: int, name: str
) -> subprocess.Popen[str]:
    arguments = [str(folder), server.base_url, str(limit), str(calls), name]
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments], stdout=subprocess.PIPE, text=True
    )


def until(true: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + 60
    while not true() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert true()


async def crowd(places: list[Places], each: int) -> int:
    """Lets many enter at once; returns the most that were in at a time."""
    inside = most = 0

    async def visit(one: Places) -> None:
        nonlocal inside, most
        async with one:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(visit(one) for one in places for _ in range(each)))
    return most


def test_at_most_so_many_are_in_at_once(tmp_path: Path) -> None:
    places = Places(tmp_path, "address", "key", 5)
    assert asyncio.run(crowd([places], 50)) == 5
    assert asyncio.run(crowd([places], 50)) == 5, "on another loop as well"
    places.close()


def test_the_lower_limit_holds_for_all_who_ask_at_one_address(tmp_path: Path) -> None:
    five, three = Places(tmp_path, "address", "key", 5), Places(tmp_path, "address", "key", 3)
    assert asyncio.run(crowd([five, three], 50)) == 3
    three.close()
    assert asyncio.run(crowd([five], 50)) == 5, "once its part is closed it binds nobody"
    five.lower(2)
    assert asyncio.run(crowd([five], 50)) == 2
    five.close()


@pytest.mark.parametrize(("address", "key"), [("another", "key"), ("address", "another")])
def test_another_address_or_key_has_places_of_its_own(
    tmp_path: Path, address: str, key: str
) -> None:
    one, other = Places(tmp_path, "address", "key", 2), Places(tmp_path, address, key, 3)
    assert asyncio.run(crowd([one, other], 20)) == 5
    one.close()
    other.close()


def test_the_key_is_in_no_name(tmp_path: Path) -> None:
    Places(tmp_path, "address", "sk-secret", 2).close()
    assert all(
        "secret" not in path.name and b"secret" not in path.read_bytes()
        for path in tmp_path.iterdir()
    )


def test_who_is_cancelled_while_waiting_or_inside_leaves_no_place_behind(tmp_path: Path) -> None:
    places = Places(tmp_path, "address", "key", 2)

    async def stay() -> None:
        async with places:
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
    assert asyncio.run(crowd([places], 9)) == 2
    places.close()


def test_threads_with_loops_of_their_own_share_the_places(tmp_path: Path) -> None:
    with ScriptedEndpoint(latency_s=0.005) as server:

        async def ask() -> None:
            settings = EndpointSettings(server.base_url, "key", 3, 10.0, 0)
            places = Places(tmp_path, server.base_url, "key", 3)
            endpoint = Endpoint(settings, places=places)
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


@pytest.mark.parametrize(
    "limits",
    [
        (4, 4, 4),
        *(pytest.param(limits, marks=pytest.mark.slow) for limits in [(1, 1), (2, 2, 2, 2)]),
    ],
)
def test_the_limit_holds_over_processes_and_nobody_starves(
    tmp_path: Path, limits: tuple[int, ...]
) -> None:
    with ScriptedEndpoint(latency_s=0.02) as server, ExitStack() as stack:
        workers = [
            stack.enter_context(worker(tmp_path, server, limit, 40, str(n)))
            for n, limit in enumerate(limits)
        ]
        spans = [json.loads(one.communicate(timeout=120)[0]) for one in workers]
        assert server.peak <= limits[0]
        assert server.count() == 40 * len(limits)

    # All had the same work: if they are served fairly, they end at the same time.
    starts, ends = zip(*spans, strict=True)
    first = min(end - start for start, end in spans)
    assert first > 0.3 * (max(ends) - max(starts))


def test_the_lowest_limit_of_the_processes_under_way_holds(tmp_path: Path) -> None:
    with ScriptedEndpoint(latency_s=0.05) as server, ExitStack() as stack:
        high = stack.enter_context(worker(tmp_path, server, 12, 20_000, "high"))
        until(lambda: server.peak == 12)
        low = stack.enter_context(worker(tmp_path, server, 3, 200, "low"))
        until(lambda: any("low" in str(body) for _, body in server.requests))
        before = server.count()
        until(lambda: server.count() >= before + 24)
        server.peak = 0
        until(lambda: server.count() >= before + 45)
        assert server.peak <= 3
        for process in (low, high):
            process.kill()


def test_a_process_that_is_killed_gives_its_places_back(tmp_path: Path) -> None:
    with ScriptedEndpoint(latency_s=0.2) as server, ExitStack() as stack:
        doomed = stack.enter_context(worker(tmp_path, server, 4, 400, "doomed"))
        until(lambda: server.peak == 4)
        heir = stack.enter_context(worker(tmp_path, server, 4, 12, "heir"))
        os.kill(doomed.pid, signal.SIGKILL)
        doomed.wait()
        killed = time.monotonic()
        _, ended = json.loads(heir.communicate(timeout=60)[0])
        assert ended - killed < 30
        assert server.peak <= 8, "the killed one's requests may still be under way at the endpoint"
