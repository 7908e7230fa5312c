"""What mem0's ingest of LoCoMo's conv-26 costs: calls and tokens, by turn and by round.

    MEMEVAL_DATA_DIR=... python perf/mem0_ingest.py [granularity ...]

An endpoint on loopback replies to each extraction with one memory per line of the new messages, at
most three. The counts are those that the endpoint saw, by memeval's offline tokenizer: tokens of
other models differ by a few per cent, and another model names other memories.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memeval.llm.tokens import count_tokens

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from doubles.endpoint import ScriptedEndpoint

MARK = "## New Messages\n"
"""What tells mem0's extraction from other requests."""
MOST = 3
"""Memories that a reply names at most."""
NAMED_WORDS = 15
"""Words of a memory."""


def main() -> None:
    print("| granularity | chunks | calls | tokens sent | per call | replied | embedded |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for granularity in sys.argv[1:] or ("turn", "round"):
        print(measure(granularity))


def reply(body: Mapping[str, Any]) -> str:
    """The memories of an extraction; a word in reply to a question."""
    text = str(body["messages"][-1]["content"])
    if MARK not in text:
        return "nothing"

    new = text.split(MARK)[1].split("\n##", maxsplit=1)[0]
    said = [line for line in new.splitlines() if re.search(r"\w", line)][:MOST]
    memories = [
        {"id": str(number), "text": " ".join(line.split()[:NAMED_WORDS]), "attributed_to": "user"}
        for number, line in enumerate(said)
    ]
    return json.dumps({"memory": memories})


def measure(granularity: str) -> str:
    """A row of the table."""
    with ScriptedEndpoint(reply) as endpoint, tempfile.TemporaryDirectory() as home:
        command = [
            *(sys.executable, "-m", "memeval", "prepare"),
            *("system=mem0", "dataset=locomo", "dataset.limit_cases=1"),
            f"granularity={granularity}",
            *("llm=openai", "llm.model=scripted", f"llm.base_url={endpoint.base_url}"),
            *("embedder=openai", "embedder.model=scripted"),
            f"embedder.base_url={endpoint.base_url}",
        ]
        environment = {"MEMEVAL_HOME": home, "OPENAI_API_KEY": "of the measurement"}
        subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True)
        chats = [body for path, body in endpoint.requests if path.endswith("/chat/completions")]
        texts = [
            text
            for path, body in endpoint.requests
            if path.endswith("/embeddings")
            for text in body["input"]
        ]

    chunks = sum(MARK in str(body["messages"][-1]["content"]) for body in chats)
    sent = sum(
        count_tokens(str(message["content"])) for body in chats for message in body["messages"]
    )
    replied = sum(count_tokens(reply(body)) for body in chats)
    embedded = sum(map(count_tokens, texts))
    cells = [
        granularity,
        f"{chunks:,}",
        f"{len(chats):,}",
        f"{sent:,}",
        f"{sent / len(chats):,.0f}",
        f"{replied:,}",
        f"{embedded:,}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
