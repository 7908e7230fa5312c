"""Lag from write to read, measured with a clock that advances only by pauses and writes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from served_examples import ScriptedMemory

from memeval.systems.base import MemorySystem, SystemContext
from memeval.systems.external.http import HttpMemory, HttpSettings
from memeval.testing.check_finding import FACTS
from memeval.testing.lag import Lag, measure_lag
from memeval.testing.under_test import SystemUnderTest, play


@dataclass
class Clock:
    now: float = 100.0
    pauses: int = 0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1


class Served(SystemUnderTest):
    def __init__(self, address: str) -> None:
        self.address = address

    def build(self, parts: SystemContext) -> MemorySystem:
        # One chunk per request; the last one is the fact.
        return HttpMemory(HttpSettings(base_url=self.address, batch_size=1, max_retries=0), parts)


def lag_of(after: float, *, patience_s: float = 600.0) -> tuple[Lag, Clock, int]:
    """Measures a service that finds nothing until `after` seconds after its last write.

    Returns the lag, the clock, and the number of `ready` requests.
    """
    clock, lags, written = Clock(), [], [0.0]

    def take(body: Any, reply: Any) -> Any:
        # Each write takes a second, which is not counted as lag.
        clock.now += 1.0
        written[0] = clock.now
        return reply

    def find(body: Any, reply: Any) -> Any:
        return reply if clock.now - written[0] >= after else {**reply, "results": []}

    async def measure(sut: SystemUnderTest) -> None:
        lags.append(
            await measure_lag(
                sut, "ferry", patience_s=patience_s, clock=lambda: clock.now, sleep=clock.sleep
            )
        )

    with ScriptedMemory({"ingest": take, "search": find}) as service:
        asyncio.run(play(measure, Served(service.address)))
        assert any(FACTS["ferry"] in str(body) for body in service.sent("ingest"))
        return lags[0], clock, len(service.sent("ready"))


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.3, 240.0])
def test_a_known_lag_is_measured_within_a_tenth(after: float) -> None:
    lag, clock, asked_ready = lag_of(after)
    assert lag.seconds is not None
    assert after <= lag.seconds <= 1.1 * after
    assert asked_ready == 0
    # Pauses grow, so 800 times the lag takes only a few times as many.
    assert clock.pauses < 200


def test_fact_found_immediately_has_no_lag() -> None:
    lag, clock, _ = lag_of(0.0)
    assert (lag, clock.pauses) == (Lag(seconds=0.0, looks=1), 0)


def test_fact_not_found_in_time_has_no_lag_figure() -> None:
    lag, clock, _ = lag_of(50.0, patience_s=20.0)
    assert lag.seconds is None
    assert lag.looks > 3
    # Twelve turns of talk and the fact took a second each.
    assert clock.now == pytest.approx(100.0 + 13 + 20.0)
