"""The cost of mem0's ingest of LoCoMo's conv-26: calls and tokens, by turn and by round.

    MEMEVAL_DATA_DIR=... python perf/mem0_ingest.py [granularity ...]

An endpoint on loopback replies to each extraction with one memory per new message, at most three.
The figures count what the endpoint received, in tokens of memeval's offline tokenizer. Counts of
other tokenizers differ by a few per cent, and another model extracts other memories.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterable

from measured import Body, ScriptedEndpoint, run_memeval

from memeval.llm.tokens import count_tokens
from memeval.report.tables import table

MARK = "## New Messages\n"
"""Only the extraction's requests contain it."""
MAX_MEMORIES = 3
"""Per reply."""
WORDS_PER_MEMORY = 15


def main() -> None:
    header = ["granularity", "chunks", "calls", "tokens sent", "per call", "replied", "embedded"]
    rows = map(measure, sys.argv[1:] or ["turn", "round"])
    print("\n".join(table(header, rows)))


def prompt_of(body: Body) -> str:
    return str(body["messages"][-1]["content"])


def reply(body: Body) -> str:
    """The memories of an extraction; one word in reply to a question."""
    prompt = prompt_of(body)
    if MARK not in prompt:
        return "nothing"

    messages = prompt.split(MARK)[1].split("\n##", maxsplit=1)[0]
    lines = list(filter(re.compile(r"\w").search, messages.splitlines()))
    memories = []
    for number, line in enumerate(lines[:MAX_MEMORIES]):
        text = " ".join(line.split()[:WORDS_PER_MEMORY])
        memories.append({"id": str(number), "text": text, "attributed_to": "user"})

    return json.dumps({"memory": memories})


def measure(granularity: str) -> list[str]:
    """A row of the table."""
    with ScriptedEndpoint(reply) as endpoint, tempfile.TemporaryDirectory() as home:
        words = [
            "prepare",
            "system=mem0",
            "dataset=locomo",
            "dataset.limit_cases=1",
            f"granularity={granularity}",
            "llm=openai",
            "llm.model=scripted",
            f"llm.base_url={endpoint.base_url}",
            "embedder=openai",
            "embedder.model=scripted",
            f"embedder.base_url={endpoint.base_url}",
        ]
        run_memeval(words, home)

    return [granularity, *figures(endpoint.requests)]


def figures(requests: Iterable[tuple[str, Body]]) -> list[str]:
    """Chunks, calls and tokens of the requests of one ingest."""
    calls = chunks = sent = replied = embedded = 0
    for path, body in requests:
        if path.endswith("/embeddings"):
            embedded += sum(map(count_tokens, body["input"]))
        elif path.endswith("/chat/completions"):
            calls += 1
            chunks += MARK in prompt_of(body)
            replied += count_tokens(reply(body))
            for message in body["messages"]:
                sent += count_tokens(str(message["content"]))

    counts = [chunks, calls, sent, round(sent / calls), replied, embedded]
    return list(map("{:,}".format, counts))


if __name__ == "__main__":
    main()
