"""How busy the slots of an endpoint are with tool loops: LoCoMo's questions with `reader=tools`
against an endpoint on loopback where each call takes 200 ms, in loops of 3 to 6 steps.

    MEMEVAL_DATA_DIR=... python perf/busy.py [--latency 0.2] [--concurrency 64] [overrides ...]

Busy is calls x latency / (slots x seconds from the first call to the last reply). The target is
90 %. The endpoint runs in a separate process.
"""

from __future__ import annotations

import json
import tempfile
from hashlib import sha256
from typing import Any

from measured import Body, parser_of, run_memeval, serve, serve_replies, stats_of

TARGET = 0.9


def main() -> None:
    parser = parser_of(__doc__, latency=0.2, concurrency=64)
    parser.add_argument("--serve", action="store_true", help="be the endpoint")
    options, overrides = parser.parse_known_args()
    if options.serve:
        serve_replies(reply, options.latency)
    else:
        measure(options.latency, options.concurrency, overrides)


def measure(latency_s: float, slots: int, overrides: list[str]) -> None:
    """Runs the questions against the endpoint; exit status 1 if its slots are less busy than the
    target.
    """
    with serve(latency_s, __file__) as url, tempfile.TemporaryDirectory() as home:
        words = [
            "dataset=locomo",
            "system=bm25",
            "reader=tools",
            "llm=openai",
            "judge=keyword",
            "tracking=none",
            f"llm.base_url={url}",
            f"llm.max_concurrency={slots}",
            *overrides,
        ]
        cost = run_memeval(words, home)
        stats = stats_of(url)

    calls, seconds = stats["requests"], stats["seconds"]
    busy = calls * latency_s / (slots * seconds)
    print(
        f"{calls} calls of {latency_s * 1e3:.0f} ms in {seconds:.1f} s, {stats['peak']} at "
        f"once: {slots} slots were {busy:.1%} busy (target: {TARGET:.0%}); "
        f"{cost.cpu_s / calls * 1e3:.2f} ms of CPU per call"
    )
    raise SystemExit(int(busy < TARGET))


def reply(body: Body) -> dict[str, Any]:
    """Two to five searches, each for another word of the question, then the answer."""
    questions = []
    searches = 0
    for message in body["messages"]:
        if message["role"] == "user":
            questions.append(str(message["content"]))
        elif message["role"] == "tool":
            searches += 1

    digest = sha256(questions[0].encode()).digest()
    if searches >= 2 + digest[0] % 4:
        return {"content": "Answer: no idea"}

    words = questions[0].split()
    word = words[digest[searches + 1] % len(words)]
    arguments = json.dumps({"query": f"{word} {searches}"})
    function = {"name": "search_memory", "arguments": arguments}
    return {"tool_calls": [{"id": f"call_{searches}", "type": "function", "function": function}]}


if __name__ == "__main__":
    main()
