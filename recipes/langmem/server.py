"""LangMem behind the addresses of `system=http`.

`python server.py PORT` extracts memories by a model; `python server.py PORT verbatim` stores what
was said as it is. The endpoint is that of OPENAI_BASE_URL and OPENAI_API_KEY.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.store.memory import InMemoryStore
from langmem import create_memory_store_manager

sys.path.append(str(Path(__file__).parents[1]))
from serving import listen

MODEL = os.environ.get("LANGMEM_MODEL", "gpt-4o-mini")
EMBEDDING = os.environ.get("LANGMEM_EMBEDDING", "text-embedding-3-small")
WIDTH = int(os.environ.get("LANGMEM_WIDTH", "1536"))
VERBATIM = "verbatim" in sys.argv


class Meter(BaseCallbackHandler):
    """Counts the calls of the chat model, and their tokens as the endpoint reports them."""

    def __init__(self) -> None:
        self.usages: list[dict[str, Any]] = []

    def on_llm_end(self, response: Any, **_: Any) -> None:
        for generations in response.generations:
            counted = getattr(generations[0].message, "usage_metadata", None) or {}
            self.usages.append(
                {
                    "model": MODEL,
                    "provider": "openai",
                    "prompt_tokens": counted.get("input_tokens"),
                    "completion_tokens": counted.get("output_tokens"),
                }
            )


# `check_embedding_ctx_length` would send tokens instead of text, which few endpoints take.
vectors = OpenAIEmbeddings(model=EMBEDDING, check_embedding_ctx_length=False)
embedded: SimpleQueue[int] = SimpleQueue()  # a member for each request to embed


def embed(texts: list[str]) -> list[list[float]]:
    embedded.put(1)
    return vectors.embed_documents(list(texts))


store = InMemoryStore(index={"dims": WIDTH, "embed": embed})
turns: dict[str, dict[str, list[str]]] = defaultdict(dict)  # by namespace, by key of a memory


def ingest(namespace: str, chunk: dict[str, Any], meter: Meter) -> None:
    if VERBATIM:
        turns[namespace][chunk["id"]] = chunk["turn_ids"]
        store.put((namespace,), chunk["id"], {"content": chunk["text"]})
        return

    manager = create_memory_store_manager(
        ChatOpenAI(model=MODEL, temperature=0), namespace=(namespace,), store=store
    )
    said = {"messages": [{"role": "user", "content": chunk["text"]}]}
    for changed in manager.invoke(said, config={"callbacks": [meter]}):
        known = turns[namespace].setdefault(changed["key"], [])
        known += [turn for turn in chunk["turn_ids"] if turn not in known]


def text_of(value: Any) -> str:
    """The text of a memory, which LangMem wraps in objects."""
    while isinstance(value, dict):
        value = value.get("content", json.dumps(value))

    return str(value)


def embeddings() -> list[dict[str, Any]]:
    """The requests to embed since the last look. LangChain does not tell their tokens."""
    count = 0
    while not embedded.empty():
        count += embedded.get()

    usage = {"kind": "embed", "model": EMBEDDING, "provider": "openai", "calls": count}
    return [usage] if count else []


def operate(operation: str, body: dict[str, Any]) -> dict[str, Any]:
    namespace = body["namespace"]
    if operation == "reset":
        for item in store.search((namespace,), limit=1_000_000):
            store.delete((namespace,), item.key)

        turns.pop(namespace, None)
        return {}
    if operation == "ready":
        return {"ready": True}

    meter = Meter()
    if operation == "ingest":
        for chunk in body["chunks"]:
            ingest(namespace, chunk, meter)

        return {"usage": [*meter.usages, *embeddings()]}
    if operation != "search":
        raise KeyError(operation)

    found = store.search((namespace,), query=body["query"], limit=body["top_k"])
    results = [
        {
            "text": text_of(item.value),
            "turn_ids": turns[namespace].get(item.key),
            "score": item.score,
        }
        for item in found
    ]
    return {"results": results, "usage": embeddings()}


if __name__ == "__main__":
    listen(operate)
