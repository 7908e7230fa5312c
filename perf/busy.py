"""How busy the slots of an endpoint are with loops of tools: LoCoMo's questions with `reader=tools`
against an endpoint on loopback where each call takes 200 ms, in loops of 3 to 6 steps.

    MEMEVAL_DATA_DIR=... python perf/busy.py [--latency 0.2] [--concurrency 64] [overrides ...]

Busy is calls x latency / (slots x seconds from the first call to the last reply). The target is
90 %. The endpoint runs in a separate process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from measured import TESTS, run_timed, stats_of

SERVE = "--serve"
TARGET = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--concurrency", type=int, default=64)
    options, overrides = parser.parse_known_args()
    words = [sys.executable, str(Path(__file__)), SERVE, str(options.latency)]
    with (
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as home,
    ):
        assert server.stdin is not None and server.stdout is not None
        address = server.stdout.readline().strip()
        ran = run_timed(
            [
                "dataset=locomo",
                "system=bm25",
                "reader=tools",
                "llm=openai",
                "judge=keyword",
                "tracking=none",
                f"llm.base_url={address}",
                f"llm.max_concurrency={options.concurrency}",
                *overrides,
            ],
            home,
        )
        stats = stats_of(address)
        server.stdin.close()

    calls, seconds = stats["requests"], stats["seconds"]
    busy = calls * options.latency / (options.concurrency * seconds)
    print(
        f"{calls} calls of {options.latency * 1e3:.0f} ms in {seconds:.1f} s, {stats['peak']} at "
        f"once: {options.concurrency} slots were {busy:.1%} busy (target: {TARGET:.0%}); "
        f"{ran.cpu_s / calls * 1e3:.2f} ms of CPU per call"
    )
    raise SystemExit(int(busy < TARGET))


def reply(body: Mapping[str, Any]) -> dict[str, Any]:
    """Two to five searches, each for another word of the question, then the answer."""
    messages = body["messages"]
    asked = next(str(message["content"]) for message in messages if message["role"] == "user")
    digest = sha256(asked.encode()).digest()
    made = sum(message["role"] == "tool" for message in messages)
    if made >= 2 + digest[0] % 4:
        return {"content": "Answer: no idea"}

    words = asked.split()
    arguments = json.dumps({"query": f"{words[digest[made + 1] % len(words)]} {made}"})
    function = {"name": "search_memory", "arguments": arguments}
    return {"tool_calls": [{"id": f"call_{made}", "type": "function", "function": function}]}


def serve(latency_s: float) -> None:
    """Prints the address of the endpoint, and serves until standard input ends."""
    sys.path.insert(0, str(TESTS))
    from doubles.endpoint import ScriptedEndpoint

    with ScriptedEndpoint(reply, latency_s=latency_s) as endpoint:
        print(endpoint.base_url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1:2] == [SERVE]:
        serve(float(sys.argv[2]))
    else:
        main()
