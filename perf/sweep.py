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
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

SWEEP = (
    "-m",
    "dataset=locomo",
    "dataset.limit_questions=42",
    "system=bm25,rag,no_memory",
    "top_k=3,5,10",
    "llm=openai",
    "judge=llm",
)


@dataclass(frozen=True)
class Timed:
    """What a command took."""

    wall_s: float
    cpu_s: float
    said: str


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--places", type=int, default=64)
    options, overrides = parser.parse_known_args()
    serve = [sys.executable, "-m", "memeval.testing.endpoint", "--latency", str(options.latency)]
    with (
        subprocess.Popen(
            serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as endpoint,
        tempfile.TemporaryDirectory() as home,
    ):
        assert endpoint.stdout is not None and endpoint.stdin is not None
        address = endpoint.stdout.readline().strip()
        reach = [f"llm.base_url={address}", f"llm.max_concurrency={options.places}"]
        command = [sys.executable, "-m", "memeval", *SWEEP, *reach, *overrides]
        environment = {**os.environ, "MEMEVAL_HOME": home, "OPENAI_API_KEY": "test"}

        first = timed(command, environment)
        calls = json.load(urlopen(f"{address}/stats"))["requests"]
        bare_s = asyncio.run(bare(address, calls, options.places))
        again = timed(command, environment)
        endpoint.stdin.close()

    ideal_s = calls * options.latency / options.places
    print(f"{calls} calls, ideal {ideal_s:.1f} s")
    print(
        f"sweep     {first.wall_s:6.1f} s  {first.wall_s / ideal_s:5.2f} x  {first.cpu_s:.1f} s CPU"
    )
    print(f"bare loop {bare_s:6.1f} s  {bare_s / ideal_s:5.2f} x")
    print(f"again     {again.wall_s:6.1f} s            {again.cpu_s:.1f} s CPU")
    print(next(line for line in first.said.splitlines() if "places busy" in line))


def timed(command: list[str], environment: dict[str, str]) -> Timed:
    """Runs a command, and says what it took."""
    before, began = used_s(), time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)

    return Timed(time.perf_counter() - began, used_s() - before, done.stderr)


def used_s() -> float:
    """CPU seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
