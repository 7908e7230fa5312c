"""Cognee behind the addresses of `system=http`: `python server.py PORT`. The endpoint is that of
OPENAI_BASE_URL and OPENAI_API_KEY. What Cognee stores is in a temporary folder, which ends with the
server.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MODEL = os.environ.get("COGNEE_MODEL", "gpt-4o-mini")
EMBEDDING = os.environ.get("COGNEE_EMBEDDING", "text-embedding-3-small")
FOLDER = tempfile.TemporaryDirectory(prefix="cognee-")
TABLES = Path(find_spec("litellm").origin).parent / "litellm_core_utils" / "tokenizers"
ENDPOINT = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
KEY = os.environ.get("OPENAI_API_KEY", "not-needed")

# Cognee reads its settings when it is imported.
os.environ |= {
    "LLM_PROVIDER": "openai",
    "LLM_MODEL": f"openai/{MODEL}",
    "LLM_ENDPOINT": ENDPOINT,
    "LLM_API_KEY": KEY,
    "EMBEDDING_PROVIDER": "openai",
    "EMBEDDING_MODEL": f"openai/{EMBEDDING}",
    "EMBEDDING_ENDPOINT": ENDPOINT,
    "EMBEDDING_API_KEY": KEY,
    "EMBEDDING_DIMENSIONS": os.environ.get("COGNEE_WIDTH", "1536"),
    "SYSTEM_ROOT_DIRECTORY": f"{FOLDER.name}/system",
    "DATA_ROOT_DIRECTORY": f"{FOLDER.name}/data",
    "ENABLE_BACKEND_ACCESS_CONTROL": "true",  # a graph and vectors for each data set
    "CACHING": "false",  # a question knows nothing of those before it
    "TELEMETRY_DISABLED": "1",
    "LOG_LEVEL": "ERROR",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # fetched otherwise
    "TIKTOKEN_CACHE_DIR": str(TABLES),  # litellm brings what tiktoken would fetch
}

import litellm  # noqa: E402

sys.path.append(str(Path(__file__).parents[1]))
from serving import Meter, serve  # noqa: E402

METER: ContextVar[Meter] = ContextVar("METER")
"""Of the request that is under way."""


def counted(call: Callable[..., Awaitable[Any]], kind: str, model: str) -> Callable[..., Any]:
    """A function of litellm whose calls are noted."""

    async def noting(*arguments: Any, **options: Any) -> Any:
        reply = await call(*arguments, **options)
        METER.get().note(kind, model, getattr(reply, "usage", None))
        return reply

    return noting


# Before Cognee takes them.
litellm.acompletion = counted(litellm.acompletion, "chat", MODEL)
litellm.aembedding = counted(litellm.aembedding, "embed", EMBEDDING)

import cognee  # noqa: E402
from cognee.tasks.ingestion.data_item import DataItem  # noqa: E402

DATASETS = itertools.count()


class Graph:
    """The data set of one case: each chunk is a document."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._turns: dict[str, list[str]] = {}  # by text
        self._dataset = f"case{next(DATASETS)}"

    async def ingest(self, chunks: list[dict[str, Any]]) -> int:
        METER.set(self._meter)
        fresh = []
        for chunk in chunks:
            # Cognee takes a text once: a second chunk of the same text shares its document.
            text = chunk["text"].strip()
            if text not in self._turns:
                fresh.append(text)

            known = self._turns.setdefault(text, [])
            known += [turn for turn in chunk["turn_ids"] if turn not in known]

        if fresh:
            # Literal: a text that reads like a path or an address is not opened.
            items = [DataItem(text, literal_text=True) for text in fresh]
            await cognee.add(items, dataset_name=self._dataset)

        # Even if nothing is new: a request that failed half-way is sent again.
        await cognee.cognify([self._dataset])
        return 0

    async def search(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        if not self._turns:
            return []

        METER.set(self._meter)
        found = await cognee.search(
            body["query"],
            query_type=cognee.SearchType.GRAPH_COMPLETION,
            datasets=[self._dataset],
            top_k=body["top_k"],
            only_context=True,  # memeval's reader answers
            verbose=True,
        )
        edges = found[0]["objects_result"] or [] if found else []
        return [self._result(edge) for edge in edges]

    def _result(self, edge: Any) -> dict[str, Any]:
        """Two nodes and how they are related, with the turns where one is a chunk."""
        shown = [_text(edge.node1.attributes), _text(edge.node2.attributes)]
        told = edge.attributes
        relation = told.get("edge_text") or told.get("relationship_type") or "is related to"
        result: dict[str, Any] = {"text": f"{shown[0]} -- {relation} -- {shown[1]}"}

        turns = [turn for text in shown for turn in self._turns.get(text.strip(), ())]
        if turns:
            result["turn_ids"] = list(dict.fromkeys(turns))

        return result

    async def close(self) -> None:
        """Nothing: the data sets end with the folder, and no case has the name of another."""


def _text(node: dict[str, Any]) -> str:
    """A chunk or a summary as it is, an entity as its name."""
    return str(node.get("text") or node.get("name") or "")


if __name__ == "__main__":
    serve(Graph)
