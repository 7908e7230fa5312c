"""How near a sweep comes to the ideal: nine cells over LoCoMo, three systems times three `top_k`,
with 385 questions each, against an endpoint on loopback where each call takes as long as is said.

    MEMEVAL_DATA_DIR=... python perf/sweep.py [--latency 0.2] [--places 64] [overrides ...]

The ideal is calls x latency / places. Printed as multiples of it: the whole process, and from the
first call to the last, with the share of the places that was in use; a bare aiohttp loop that makes
as many calls, before and after; the finished sweep again. CPU seconds are those of the sweep's
process and its children. The endpoint runs in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from typing import Any

from measured import run_timed, serve, stats_of

SWEEP = (
    "-m",
    "dataset=locomo",
    "dataset.limit_questions=42",
    "system=bm25,rag,no_memory",
    "top_k=3,5,10",
    "llm=openai",
    "judge=llm",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--places", type=int, default=64)
    options, overrides = parser.parse_known_args()
    with serve(options.latency) as address, tempfile.TemporaryDirectory() as home:
        reach = [f"llm.base_url={address}", f"llm.max_concurrency={options.places}"]
        words = [*SWEEP, *reach, *overrides]
        first = run_timed(words, home)
        calls = stats_of(address)["requests"]
        bare_s = asyncio.run(bare(address, calls, options.places))
        again = run_timed(words, home)

    ideal_s = calls * options.latency / options.places
    print(f"{calls} calls, ideal {ideal_s:.1f} s")
    print(
        f"sweep     {first.wall_s:6.1f} s  {first.wall_s / ideal_s:5.2f} x  {first.cpu_s:.1f} s CPU"
    )
    print(f"bare loop {bare_s:6.1f} s  {bare_s / ideal_s:5.2f} x")
    print(f"again     {again.wall_s:6.1f} s            {again.cpu_s:.1f} s CPU")
    print(next(line for line in first.said.splitlines() if "request slots in use" in line))


async def bare(address: str, calls: int, places: int) -> float:
    """Seconds that as many calls take without anything around them."""
    import aiohttp

    left = iter(range(calls))
    connector = aiohttp.TCPConnector(limit=places)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask() -> None:
            for number in left:
                body: dict[str, Any] = {
                    "model": "bare",
                    "messages": [{"role": "user", "content": f"Question {number}?"}],
                }
                async with session.post(f"{address}/chat/completions", json=body) as reply:
                    await reply.read()

        began = time.perf_counter()
        await asyncio.gather(*(ask() for _ in range(places)))
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
