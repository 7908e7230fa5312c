"""An awaited run ends when its caller is cancelled, and loses no finished call."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from doubles.endpoint import ScriptedEndpoint

import memeval

WORDS = ("dataset=demo", "system=no_memory", "tracking=none", "llm=openai", "llm.model=gpt-4o-mini")
LIMITS = ("judge=keyword", "llm.max_concurrency=4")


def words(endpoint: ScriptedEndpoint, *more: str) -> tuple[str, ...]:
    return (*WORDS, *LIMITS, f"llm.base_url={endpoint.base_url}", *more)


async def until_asked(endpoint: ScriptedEndpoint, count: int) -> None:
    async with asyncio.timeout(60):
        while endpoint.count() < count:  # noqa: ASYNC110 - the endpoint is in another thread
            await asyncio.sleep(0.02)


def test_cancelled_run_finishes_open_calls_and_keeps_them(home: Path) -> None:
    with ScriptedEndpoint(latency_s=0.2) as endpoint:
        few = words(endpoint, "dataset.limit_cases=2")

        async def cancel() -> None:
            run = asyncio.create_task(memeval.arun(*few, progress=False))
            await until_asked(endpoint, 6)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

        asyncio.run(cancel())
        asked = endpoint.count()
        assert asked < 20
        assert sum(endpoint.served.values()) == asked, "none was cut off"
        time.sleep(0.5)
        assert endpoint.count() == asked, "none begins later"

        finished = memeval.run(*few, progress=False)
        assert finished.valid and endpoint.count() == len(finished.records())


def test_an_interrupted_cell_of_a_notebook_makes_no_further_call(home: Path) -> None:
    with ScriptedEndpoint(latency_s=0.2) as endpoint:

        def interrupt() -> None:
            asyncio.run(until_asked(endpoint, 6))
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            memeval.run(*words(endpoint, "dataset.limit_cases=2", "seed=6"), progress=False)

        asked = endpoint.count()
        assert asked < 20
        assert sum(endpoint.served.values()) == asked, "none is under way"


def test_cancelling_one_run_leaves_another_running(home: Path) -> None:
    with ScriptedEndpoint(latency_s=0.1) as endpoint:
        few = words(endpoint, "dataset.limit_questions=8", "seed=3")

        async def cancel_one() -> memeval.Run:
            other = asyncio.create_task(memeval.arun(*few, progress=False))
            one = asyncio.create_task(memeval.arun(*words(endpoint, "seed=4"), progress=False))
            await until_asked(endpoint, 8)
            one.cancel()
            await asyncio.wait({one})
            assert one.cancelled()
            async with asyncio.timeout(60):
                return await other

        assert asyncio.run(cancel_one()).valid


def test_a_run_that_is_cancelled_before_it_begins_makes_no_call(home: Path) -> None:
    with ScriptedEndpoint() as endpoint:

        async def cancel() -> None:
            run = asyncio.create_task(memeval.arun(*words(endpoint, "seed=5"), progress=False))
            await asyncio.sleep(0)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

        asyncio.run(cancel())
        assert endpoint.count() == 0
