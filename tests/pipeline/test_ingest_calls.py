"""A memory is filled by one call after another, each with the full time limit."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from memeval.errors import SystemFaultError
from memeval.pipeline.isolate.watch import Watched
from memeval.records import Answer, MemoryChunk, Query
from memeval.systems.base import MemorySystem

LIMIT_S = 0.3
CALLS = [("reset", ()), *[("ingest", (number,)) for number in range(4)], ("consolidate", ())]


class Slow(MemorySystem):
    """Takes a third of the limit for each chunk, and hangs at a given chunk."""

    in_thread = False

    def __init__(self, hangs_at: int | None = None) -> None:
        self.hangs_at = hangs_at
        self.seen: list[Any] = []

    def reset(self) -> None:
        self.seen.append("reset")

    async def ingest(self, chunk: MemoryChunk) -> None:
        self.seen.append(chunk)
        await asyncio.sleep(60 if chunk == self.hangs_at else LIMIT_S / 3)

    def consolidate(self) -> None:
        self.seen.append("consolidate")

    def answer(self, query: Query) -> Answer:
        raise NotImplementedError


class Plain(Slow):
    """The same, with a blocking method on the event loop's thread."""

    def ingest(self, chunk: MemoryChunk) -> None:  # type: ignore[override]
        self.seen.append(chunk)
        time.sleep(60 if chunk == self.hangs_at else LIMIT_S / 3)


class InThread(Plain):
    in_thread = True


class Mixed(Slow):
    """Its plain methods run in a thread, the others on the loop."""

    in_thread = True


@pytest.fixture(params=[Slow, Plain, InThread, Mixed])
def kind(request: pytest.FixtureRequest) -> type[Slow]:
    kind: type[Slow] = request.param
    return kind


@pytest.mark.slow
def test_calls_run_in_order_and_each_has_the_full_time_limit(
    kind: type[Slow],
) -> None:
    system = kind()
    asyncio.run(Watched(system, timeout_s=LIMIT_S).run(CALLS))
    assert system.seen == ["reset", 0, 1, 2, 3, "consolidate"]


@pytest.mark.sampled(kept=2)
def test_hanging_call_is_named_and_ends_the_ingest(kind: type[Slow]) -> None:
    system = kind(hangs_at=2)
    watched = Watched(system, timeout_s=LIMIT_S)
    with pytest.raises(SystemFaultError, match=r"in ingest: did not finish within 0\.3 s"):
        asyncio.run(watched.run(CALLS))

    assert system.seen == ["reset", 0, 1, 2]
    # Nothing more is called on an abandoned system. A plain call on the loop's thread was
    # interrupted instead.
    assert watched.has_hung_call == (kind is not Plain)


@pytest.mark.parametrize("kind", [Slow, Plain])
def test_loop_runs_other_tasks_between_two_calls(kind: type[Slow]) -> None:
    turns: list[int] = []

    async def run() -> None:
        async def count() -> None:
            while True:
                turns.append(len(system.seen))
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        await Watched(system).run(CALLS)
        counting.cancel()

    system = kind()
    asyncio.run(run())
    assert {1, 2, 3, 4, 5} <= set(turns)


def test_cancelled_ingest_makes_few_further_calls(kind: type[Slow]) -> None:
    system = kind()
    calls = [("ingest", (number,)) for number in range(30)]

    async def run() -> None:
        filling = asyncio.ensure_future(Watched(system).run(calls))
        await asyncio.sleep(LIMIT_S / 2)
        filling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await filling

    asyncio.run(run())
    assert 1 <= len(system.seen) < 10


def test_method_that_returns_a_generator_is_refused_by_name() -> None:
    class Yields(Slow):
        def consolidate(self) -> Any:
            yield

    with pytest.raises(SystemFaultError, match="in consolidate: it returned a generator"):
        asyncio.run(Watched(Yields()).run(CALLS))
