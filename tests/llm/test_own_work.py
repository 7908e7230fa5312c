"""The time that a system itself works, with clocks set by the test."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memeval.llm.metering import Ledger, metered
from memeval.llm.own_work import Clocks, OwnWork, noting_collections, thread_time
from memeval.pipeline.isolate.call import Steps
from memeval.records import Query, Retrieved, Role
from memeval.systems.base import ReaderReply, SystemContext
from memeval.systems.indexed import IndexedSystem, Ranked


@dataclass
class Time:
    """Clocks that only the test advances."""

    wall: float = 0.0
    thread: float = 0.0
    process: float = 0.0
    waits: int = 0

    def own(self) -> OwnWork:
        return OwnWork(
            Clocks(
                wall=lambda: self.wall,
                thread=lambda: self.thread,
                process=lambda: self.process,
                waits=lambda: self.waits,
            )
        )

    def compute(self, seconds: float) -> None:
        """This thread computes, and no other does."""
        self.wall += seconds
        self.thread += seconds
        self.process += seconds

    def sleep(self, seconds: float, *, others: float = 0.0) -> None:
        """This thread waits; `others` is the computing time of other threads meanwhile."""
        self.wall += seconds
        self.process += others
        self.waits += 1

    def preempted(self, seconds: float) -> None:
        """Another program uses the processor."""
        self.wall += seconds


def test_computing_counts_its_processor_time_despite_preemption() -> None:
    clock = Time()
    own = clock.own()
    with own.running():
        clock.compute(0.04)
        clock.preempted(0.9)

    assert own.measured_s == pytest.approx(0.04)


def test_own_wait_of_the_system_counts() -> None:
    clock = Time()
    own = clock.own()
    with own.running():
        clock.compute(0.01)
        clock.sleep(0.02)

    assert own.measured_s == pytest.approx(0.03)


def test_wait_for_the_gil_does_not_count() -> None:
    clock = Time()
    own = clock.own()
    with own.running():
        clock.compute(0.01)
        clock.sleep(0.005, others=0.005)

    assert own.measured_s == pytest.approx(0.01)


@pytest.mark.parametrize(("waited", "measured"), [(0.005, 0.01), (0.1, None)])
def test_long_ambiguous_wait_in_a_worker_thread_is_not_measured(
    waited: float, measured: float | None
) -> None:
    clock = Time()
    own = clock.own()
    with own.running(in_thread=True):
        clock.compute(0.01)
        clock.sleep(waited, others=waited)

    assert own.measured_s == pytest.approx(measured)


def test_work_marked_as_computing_counts_only_its_processor_time() -> None:
    clock = Time()
    own = clock.own()
    with own.running():
        clock.sleep(0.02)
        with own.computing():
            clock.compute(0.01)
            # Waits for Python's lock, whose holder other programs kept from going on.
            clock.sleep(0.5, others=0.1)

    assert own.measured_s == pytest.approx(0.03)


def test_model_calls_and_queues_do_not_count() -> None:
    clock = Time()
    own = clock.own()
    with own.running():
        clock.compute(0.01)
        with own.excluded():
            clock.compute(3)
            clock.sleep(5)

        clock.compute(0.02)

    assert own.measured_s == pytest.approx(0.03)


@dataclass
class Wait:
    """An awaitable that moves the clocks while its coroutine waits."""

    time: Time
    seconds: float
    loop_s: float = 0.0
    """What the event loop computes for others during the wait."""

    def __await__(self):  # type: ignore[no-untyped-def]
        yield self

    def happen(self) -> None:
        self.time.compute(self.loop_s)
        self.time.sleep(self.seconds - self.loop_s)


def play(system: object, ledger: Ledger) -> object:
    """Runs a coroutine as the pipeline does, on a minimal loop of the test."""
    with metered(ledger):
        steps = Steps(system).__await__()  # type: ignore[arg-type]
        try:
            while True:
                steps.send(None).happen()  # type: ignore[union-attr]
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize(
    ("loop_s", "measured"), [(0.0, 0.05), (0.002, 0.048), (0.04, None)], ids=str
)
def test_wait_of_a_coroutine_counts_without_other_work_of_the_event_loop(
    loop_s: float, measured: float | None
) -> None:
    clock = Time()
    ledger = Ledger(own_work=clock.own())

    async def search() -> str:
        clock.compute(0.01)
        await Wait(clock, 0.04, loop_s)
        return "result"

    assert play(search(), ledger) == "result"
    assert ledger.own_work.measured_s == pytest.approx(measured)


def test_model_call_within_a_coroutine_does_not_count() -> None:
    clock = Time()
    ledger = Ledger(own_work=clock.own())

    async def answer() -> None:
        clock.compute(0.01)
        with ledger.calling():
            clock.compute(1)
            await Wait(clock, 7, 6)
            clock.compute(1)

        clock.compute(0.02)

    play(answer(), ledger)
    assert ledger.own_work.measured_s == pytest.approx(0.03)


def test_model_call_of_another_task_during_a_wait_does_not_count() -> None:
    clock = Time()
    ledger = Ledger(own_work=clock.own())

    class WaitWithCall(Wait):
        def happen(self) -> None:
            with ledger.calling():
                clock.sleep(2)

            super().happen()

    async def answer() -> None:
        clock.compute(0.01)
        await WaitWithCall(clock, 0.04)

    play(answer(), ledger)
    assert ledger.own_work.measured_s == pytest.approx(0.05)


def test_systems_outside_memeval_may_use_the_earlier_name() -> None:
    ledger = Ledger()
    assert ledger.own is ledger.own_work


def test_waits_for_a_lock_or_a_thread_do_not_count() -> None:
    """Searches one after another under a lock: each is measured alone, at any position."""
    clock = Time()
    lock = asyncio.Lock()

    async def search(ledger: Ledger) -> None:
        with metered(ledger), ledger.own_work.excluded():
            async with lock:
                clock.sleep(1)
                await ledger.own_work.in_worker(clock.compute, 0.06)

    async def all_at_once(ledgers: list[Ledger]) -> None:
        await asyncio.gather(*map(search, ledgers))

    ledgers = [Ledger(own_work=clock.own()) for _ in range(8)]
    asyncio.run(all_at_once(ledgers))
    assert [ledger.own_work.measured_s for ledger in ledgers] == pytest.approx([0.06] * 8)


def test_blocking_request_in_a_thread_counts_its_wall_time() -> None:
    clock = Time()
    ledger = Ledger(own_work=clock.own())

    async def ask() -> None:
        async with ledger.own_work.holding(asyncio.Lock()):
            with ThreadPoolExecutor(1) as pool:
                await ledger.own_work.in_pool(pool, clock.sleep, 0.2)

    asyncio.run(ask())
    assert ledger.own_work.measured_s == pytest.approx(0.2)


def test_garbage_collection_does_not_count() -> None:
    # Two loops in two threads note the same collection.
    with noting_collections(), noting_collections():
        began, began_all = thread_time(), time.thread_time()
        gc.collect()

    # The collection takes milliseconds; only the time of the calls themselves remains.
    assert thread_time() - began < (time.thread_time() - began_all) / 2


def test_no_ctrl_c_is_lost_in_a_callback_outside_of_a_loop() -> None:
    """Python ignores what a callback of the collector raises."""
    with noting_collections():
        assert any("own_work" in str(callback) for callback in gc.callbacks)

    assert not any("own_work" in str(callback) for callback in gc.callbacks)


def test_call_times_add_up_by_role_and_one_unknown_time_makes_them_none() -> None:
    ledger = Ledger()
    ledger.add_duration(Role.EMBED, 0.2)
    ledger.add_duration(Role.ANSWER, 0.5)
    assert ledger.calls_s(Role.EMBED) == pytest.approx(0.2)
    assert ledger.calls_s() == pytest.approx(0.7)

    ledger.add_duration(Role.EMBED, None)
    assert ledger.calls_s(Role.EMBED) is None
    assert ledger.calls_s(Role.ANSWER) == pytest.approx(0.5)


class _Entries(list[Retrieved]):
    """Six entries that each take a second to read."""

    def __init__(self, clock: Time) -> None:
        super().__init__(
            Retrieved(text=str(position), turn_ids=(str(position),)) for position in range(6)
        )
        self._clock = clock

    def __getitem__(self, position: Any) -> Any:
        self._clock.compute(1.0)
        return super().__getitem__(position)


class _Reader:
    """Answers with all that it is shown."""

    async def answer(self, query: Query, shown: Sequence[str], order: Sequence[int]) -> ReaderReply:
        return ReaderReply(text=" ".join(shown), raw=None, context_tokens=0)


class _Ranking(IndexedSystem[Any]):
    """Ranks the six entries."""

    def __init__(self, clock: Time) -> None:
        self.index, self._entries, self.retained = object(), _Entries(clock), None
        self.chunks, self.settings = [], None
        self.parts = cast(SystemContext, SimpleNamespace(top_k=2, reader=_Reader()))

    async def build(self, saved: Path | None) -> object:
        return object()

    async def rank(self, index: object, query: Query, depth: int) -> Ranked:
        return [(position, None) for position in range(6)]

    def close(self) -> None: ...


def test_entries_ranked_only_for_the_metrics_take_no_time_of_the_system() -> None:
    clock = Time()
    own = clock.own()
    with metered(Ledger(own_work=own)), own.running():
        answer = asyncio.run(_Ranking(clock).answer(Query("which?")))

    assert answer.text == "0 1"
    assert answer.ranking == tuple((str(position),) for position in range(6))
    assert own.measured_s == pytest.approx(2.0)
