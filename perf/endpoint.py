"""How near the engine comes to the ideal: LoCoMo's questions against an endpoint on loopback where
each call takes 200 ms.

    MEMEVAL_DATA_DIR=... python perf/endpoint.py [--latency 0.2] [--concurrency 64] [overrides ...]

The ideal is calls x latency / connections. Printed: from the first call to the last verdict, and
the whole process, as multiples of it; our own CPU time per question; peak memory; the finished cell
again. The endpoint runs in a separate process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any
from urllib.request import urlopen


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--concurrency", type=int, default=64)
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
        cell = [
            "dataset=locomo",
            "system=bm25",
            "llm=openai",
            "judge=llm",
            f"llm.base_url={address}",
        ]
        command = [
            sys.executable,
            "-m",
            "memeval",
            *cell,
            f"llm.max_concurrency={options.concurrency}",
            *overrides,
        ]
        environment = {**os.environ, "MEMEVAL_HOME": home, "OPENAI_API_KEY": "test"}
        first = timed(command, environment)
        stats = json.load(urlopen(f"{address}/stats"))
        again = timed(command, environment)
        endpoint.stdin.close()
    show(first, again, stats, options.latency, options.concurrency)


def timed(command: list[str], environment: dict[str, str]) -> dict[str, float]:
    """Wall and CPU seconds of a command and its children, and its peak memory in MB."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit status {process.returncode}: {' '.join(command)}")
    return {
        "wall": time.perf_counter() - began,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


def show(
    first: dict[str, float],
    again: dict[str, float],
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
    print(
        f"whole process               {first['wall']:6.2f} s  {first['wall'] / ideal:5.2f} x ideal"
    )
    print(
        f"CPU, children included      {first['cpu']:6.2f} s  "
        f"{first['cpu'] / calls * 1e3:5.2f} ms per call"
    )
    print(f"peak memory                 {first['peak_mb']:6.0f} MB")
    print(f"the finished cell again     {again['wall']:6.2f} s")


if __name__ == "__main__":
    main()
