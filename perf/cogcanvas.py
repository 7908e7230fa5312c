"""How close cogcanvas comes to the ideal of its call graph, against an endpoint on loopback where
each call takes 200 ms.

    MEMEVAL_DATA_DIR=... python perf/cogcanvas.py [--latency 0.2] [--concurrency 64] [overrides ...]

A case's calls form three layers, each of which needs the one before: the first pass over its
batches, the second pass, its answers. The ideal is the longer of two times: all calls x latency /
connections, and three latencies. The endpoint runs in a separate process, and replies to an
extraction with one artifact per turn.
"""

from __future__ import annotations

import json
import re
import tempfile
from itertools import starmap
from typing import Any

from measured import Body, parser_of, ratio_lines, run_memeval, serve, serve_replies, stats_of

# isort: split
# Only `measured` makes the doubles of the tests importable.
from doubles.replies import scripted_reply

LAYERS = 3
MARK = "Notes that are taken already:"
"""First line of the extraction's templates, which no other request has."""


def main() -> None:
    parser = parser_of(__doc__, latency=0.2, concurrency=64)
    parser.add_argument("--serve", action="store_true", help="be the endpoint")
    options, overrides = parser.parse_known_args()
    if options.serve:
        serve_replies(reply, options.latency)
    else:
        measure(options.latency, options.concurrency, overrides)


def reply(body: Body) -> str:
    """One artifact per numbered turn in the first pass, and one more in the second."""
    prompt = str(body["messages"][-1]["content"])
    if not prompt.startswith(MARK):
        return scripted_reply(body)

    turns = re.findall(r"(?m)^(\d+)\. (?:\[.*?\] )?[^:\n]+: (.*)$", prompt)
    artifacts = list(starmap(event, turns))
    is_first_pass = f"{MARK}\n(nothing)" in prompt
    return json.dumps(artifacts if is_first_pass else artifacts[:1])


def event(number: str, quote: str) -> dict[str, Any]:
    """An artifact that quotes a turn."""
    return {
        "type": "event",
        "content": quote,
        "quote": quote,
        "chunk": int(number),
        "people": [],
    }


def measure(latency_s: float, connections: int, overrides: list[str]) -> None:
    """Runs cogcanvas against the endpoint, and prints its times."""
    with serve(latency_s, __file__) as url, tempfile.TemporaryDirectory() as home:
        words = [
            "dataset=locomo",
            "system=cogcanvas",
            "llm=openai",
            "judge=keyword",
            "tracking=none",
            f"llm.base_url={url}",
            f"llm.max_concurrency={connections}",
            *overrides,
        ]
        cost = run_memeval(words, home)
        stats = stats_of(url)

    least_s = LAYERS * latency_s
    print(*ratio_lines(stats, latency_s, connections, cost.wall_s, least_s), sep="\n")


if __name__ == "__main__":
    main()
