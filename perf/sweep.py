"""How close a sweep comes to the ideal: nine runs over LoCoMo, three systems times three `top_k`,
with 385 questions each, against an endpoint on loopback where each call takes the latency.

    MEMEVAL_DATA_DIR=... python perf/sweep.py [--latency 0.2] [--slots 64] [overrides ...]

The ideal is calls x latency / slots. Printed as multiples of it: the time of the whole process, and
that of a bare aiohttp loop that makes as many calls. Also printed: the time of the finished sweep
when it is started again, and the share of the slots that was in use. CPU seconds are those of the
sweep's process and its children. The endpoint runs in a separate process.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator

from measured import Body, parser_of, run_memeval, send_requests, serve, stats_of

SWEEP = (
    "-m",
    "dataset=locomo",
    "dataset.limit_questions=42",
    "system=bm25,rag,dense",
    "top_k=3,5,10",
    "llm=openai",
    "judge=llm",
)


def main() -> None:
    options, overrides = parser_of(__doc__, latency=0.2, slots=64).parse_known_args()
    with serve(options.latency) as url, tempfile.TemporaryDirectory() as home:
        endpoint = [f"llm.base_url={url}", f"llm.max_concurrency={options.slots}"]
        words = [*SWEEP, *endpoint, *overrides]
        first = run_memeval(words, home)
        calls = stats_of(url)["requests"]

        started = time.perf_counter()
        asyncio.run(send_requests(url, bodies(calls), options.slots))
        bare_s = time.perf_counter() - started
        again = run_memeval(words, home)

    ideal_s = calls * options.latency / options.slots
    print(
        f"{calls} calls, ideal {ideal_s:.1f} s",
        f"sweep     {first.wall_s:6.1f} s  {first.wall_s / ideal_s:5.2f} x"
        f"  {first.cpu_s:.1f} s CPU",
        f"bare loop {bare_s:6.1f} s  {bare_s / ideal_s:5.2f} x",
        f"again     {again.wall_s:6.1f} s            {again.cpu_s:.1f} s CPU",
        next(line for line in first.stderr.splitlines() if "request slots in use" in line),
        sep="\n",
    )


def bodies(count: int) -> Iterator[Body]:
    """Short requests, each with another question."""
    for number in range(count):
        message = {"role": "user", "content": f"Question {number}?"}
        yield {"model": "bare", "messages": [message]}


if __name__ == "__main__":
    main()
