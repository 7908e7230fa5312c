"""Lag from write to read: the time from the reply to a write until the fact is found."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from memeval.pipeline.execute.ingest import ingest_calls
from memeval.records import Turn
from memeval.testing.check_finding import FACTS, questions_about, sentence_of
from memeval.testing.sample import sample_case, sample_chunks
from memeval.testing.under_test import SystemUnderTest

FIRST_PAUSE_S = 0.01
PAUSE_SHARE = 0.05
"""Pause between two rounds of searches, as a share of the time waited: it bounds the error."""


@dataclass(frozen=True)
class Lag:
    seconds: float | None
    """From the end of the ingest to the beginning of the first search that found the fact; None if
    none did in time.
    """
    looks: int
    """Number of searches for it, by its question, its name or its sentence."""


async def measure_lag(
    sut: SystemUnderTest,
    thing: str,
    *,
    patience_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Lag:
    """Ingests a short conversation with one of `FACTS` at the end into a fresh memory, and searches
    for the fact until it is found or `patience_s` seconds have passed.

    Does not wait until the memory reports that it is ready. The first search starts immediately; a
    lag is measured to 0.01 s or a twentieth of it, whichever is more, plus the time of a search.
    """
    name = FACTS[thing]
    case = sample_case(f"lag {thing}")
    last = case.sessions[-1]
    fact = Turn(f"{last.session_id}:fact", "Ilse", sentence_of(thing, name), last.started_at)
    with_fact = replace(last, turns=(*last.turns, fact))
    case = replace(case, sessions=(*case.sessions[:-1], with_fact))
    memory = sut.start(sut.model(), case_id=case.case_id)
    await memory.run(ingest_calls(sample_chunks(case), {}))

    began, looks = clock(), 0
    while True:
        asked = clock()
        for question in questions_about(thing, name):
            looks += 1
            if await sut.finds(memory, question, name):
                return Lag(asked - began, looks)

        waited = clock() - began
        if waited >= patience_s:
            return Lag(None, looks)

        await sleep(min(max(FIRST_PAUSE_S, PAUSE_SHARE * waited), patience_s - waited))
