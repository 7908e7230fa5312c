"""How near the engine comes to the ideal: LoCoMo's questions against an endpoint on loopback where
each call takes 200 ms.

    MEMEVAL_DATA_DIR=... python perf/endpoint.py [--latency 0.2] [--concurrency 64] [overrides ...]

The ideal is calls x latency / connections. Printed: from the first call to the last verdict, and
the whole process, as multiples of it; our own CPU time per question; peak memory; the finished cell
again. The endpoint runs in a separate process.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

from measured import Timed, run_timed, serve, stats_of


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--concurrency", type=int, default=64)
    options, overrides = parser.parse_known_args()
    with serve(options.latency) as address, tempfile.TemporaryDirectory() as home:
        words = [
            "dataset=locomo",
            "system=bm25",
            "llm=openai",
            "judge=llm",
            f"llm.base_url={address}",
            f"llm.max_concurrency={options.concurrency}",
            *overrides,
        ]
        first = run_timed(words, home)
        stats = stats_of(address)
        again = run_timed(words, home)

    show(first, again, stats, options.latency, options.concurrency)


def show(
    first: Timed,
    again: Timed,
    stats: dict[str, Any],
    latency: float,
    connections: int,
) -> None:
    calls = stats["requests"]
    ideal = calls * latency / connections
    print(
        f"{calls} calls of {latency * 1e3:.0f} ms over {connections} connections "
        f"(peak {stats['peak']}): ideal {ideal:.2f} s"
    )
    print(
        f"first call to last verdict  {stats['seconds']:6.2f} s  "
        f"{stats['seconds'] / ideal:5.2f} x ideal"
    )
    print(f"whole process               {first.wall_s:6.2f} s  {first.wall_s / ideal:5.2f} x ideal")
    print(
        f"CPU, children included      {first.cpu_s:6.2f} s  "
        f"{first.cpu_s / calls * 1e3:5.2f} ms per call"
    )
    print(f"peak memory                 {first.peak_mb:6.0f} MB")
    print(f"the finished cell again     {again.wall_s:6.2f} s  {again.cpu_s:5.2f} s CPU")


if __name__ == "__main__":
    main()
