"""How near cogcanvas comes to the ideal of its call graph, against an endpoint on loopback where
each call takes 200 ms.

    MEMEVAL_DATA_DIR=... python perf/cogcanvas.py [--latency 0.2] [--concurrency 64] [overrides ...]

A case's calls form three layers, each of which needs the one before: the first pass over its
batches, the second pass, its answers. The ideal is the longer of all calls x latency / connections
and three latencies. The endpoint runs in a separate process, and replies to the extraction with
an artifact a turn.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from memeval.runs.forecast.made_up import scripted_reply

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from doubles.endpoint import ScriptedEndpoint

LAYERS = 3
MARK = "Notes that are taken already:"
"""What tells a request of the extraction from others: the first line of its templates."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--serve", action="store_true", help="be the endpoint")
    options, overrides = parser.parse_known_args()
    if options.serve:
        serve(options.latency)
    else:
        measure(options.latency, options.concurrency, overrides)


def serve(latency: float) -> None:
    """Serves until standard input ends; prints the address first."""
    with ScriptedEndpoint(reply, latency_s=latency) as endpoint:
        print(endpoint.base_url, flush=True)
        sys.stdin.read()


def reply(body: Mapping[str, Any]) -> str:
    """An artifact for each numbered turn at the first pass, one more for the first turn at the
    second.
    """
    words = str(body["messages"][-1]["content"])
    if not words.startswith(MARK):
        return scripted_reply(body)
    second = f"{MARK}\n(nothing)" not in words
    turns = re.findall(r"(?m)^(\d+)\. (?:\[.*?\] )?[^:\n]+: (.*)$", words)
    items = [
        {"type": "event", "content": quote, "quote": quote, "chunk": int(number), "people": []}
        for number, quote in turns
    ]
    return json.dumps(items[:1] if second else items)


def measure(latency: float, connections: int, overrides: list[str]) -> None:
    command = [sys.executable, __file__, "--serve", "--latency", str(latency)]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server,
        tempfile.TemporaryDirectory() as home,
    ):
        assert server.stdout is not None and server.stdin is not None
        address = server.stdout.readline().strip()
        cell = [
            "dataset=locomo",
            "system=cogcanvas",
            "llm=openai",
            "judge=keyword",
            "tracking=none",
            f"llm.base_url={address}",
        ]
        words = [
            sys.executable,
            "-m",
            "memeval",
            *cell,
            f"llm.max_concurrency={connections}",
            *overrides,
        ]
        began = time.perf_counter()
        subprocess.run(
            words,
            env={**os.environ, "MEMEVAL_HOME": home, "OPENAI_API_KEY": "test"},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        wall = time.perf_counter() - began
        stats = json.load(urlopen(f"{address}/stats"))
        server.stdin.close()
    show(stats, wall, latency, connections)


def show(stats: Mapping[str, Any], wall: float, latency: float, connections: int) -> None:
    calls = stats["requests"]
    ideal = max(calls * latency / connections, LAYERS * latency)
    print(
        f"{calls} calls of {latency * 1e3:.0f} ms over {connections} connections "
        f"(peak {stats['peak']}): ideal {ideal:.2f} s"
    )
    print(
        f"first call to last reply  {stats['seconds']:6.2f} s  "
        f"{stats['seconds'] / ideal:5.2f} x ideal"
    )
    print(f"whole process             {wall:6.2f} s  {wall / ideal:5.2f} x ideal")


if __name__ == "__main__":
    main()
