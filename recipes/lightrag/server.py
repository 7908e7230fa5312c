"""LightRAG behind the addresses of `system=http`: `python server.py PORT [MODE]`.

MODE is LightRAG's way to search: mix (the default), hybrid, local, global or naive. The endpoint is
that of OPENAI_BASE_URL and OPENAI_API_KEY. Graphs are in a temporary folder, which ends with the
server.
"""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
from lightrag import LightRAG, QueryParam
from lightrag.utils import EmbeddingFunc, Tokenizer
from openai import AsyncOpenAI

sys.path.append(str(Path(__file__).parents[1]))
from serving import Meter, serve

MODEL = os.environ.get("LIGHTRAG_MODEL", "gpt-4o-mini")
EMBEDDING = os.environ.get("LIGHTRAG_EMBEDDING", "text-embedding-3-small")
WIDTH = int(os.environ.get("LIGHTRAG_WIDTH", "1536"))
MODES = sys.argv[2:3] or ["mix"]
SEPARATOR = "<SEP>"  # between the sources of an entity
FOLDER = tempfile.TemporaryDirectory(prefix="lightrag-")
WORKSPACES = itertools.count()


class FourCharacters:
    """A token for each four characters: LightRAG's own tokenizer is a table from the network."""

    def encode(self, content: str) -> list[int]:
        parts = [content[start : start + 4] for start in range(0, len(content), 4)]
        # The byte before the characters keeps their zeros.
        return [int.from_bytes(b"\1" + part.encode("utf-32-be")) for part in parts]

    def decode(self, tokens: list[int]) -> str:
        parts = [token.to_bytes(17).lstrip(b"\0")[1:] for token in tokens]
        return b"".join(parts).decode("utf-32-be")


# LightRAG copies its settings deeply, methods with what they belong to, functions not: therefore
# the two that follow are no methods of the graph.


def completing(client: AsyncOpenAI) -> Callable[..., Awaitable[str]]:
    async def complete(
        prompt: str,
        system_prompt: str | None = None,
        history_messages: list[dict[str, str]] | None = None,
        response_format: Any = None,
        **_: Any,
    ) -> str:
        messages = [{"role": "system", "content": system_prompt}] if system_prompt else []
        messages += history_messages or []
        messages.append({"role": "user", "content": prompt})
        form = {"response_format": response_format} if response_format else {}
        reply = await client.chat.completions.create(
            model=MODEL, messages=messages, temperature=0, **form
        )
        return reply.choices[0].message.content or ""

    return complete


def embedding(client: AsyncOpenAI) -> Callable[..., Awaitable[np.ndarray]]:
    async def embed(texts: list[str], **_: Any) -> np.ndarray:
        reply = await client.embeddings.create(
            model=EMBEDDING, input=texts, encoding_format="float"
        )
        return np.array([row.embedding for row in reply.data], dtype=np.float32)

    return embed


class Graph:
    """The graph of one case: each chunk is a document."""

    def __init__(self, meter: Meter) -> None:
        self._client = meter.client
        self._turns: dict[str, list[str]] = {}  # by document
        self._documents: dict[str, str] = {}  # by text
        self._library: LightRAG | None = None

    async def _open(self) -> LightRAG:
        if self._library is None:
            # The library's state of a workspace outlives the instance, so each graph has a new one.
            self._library = LightRAG(
                working_dir=FOLDER.name,
                workspace=f"graph{next(WORKSPACES)}",
                llm_model_name=MODEL,
                llm_model_func=completing(self._client),
                embedding_func=EmbeddingFunc(embedding_dim=WIDTH, func=embedding(self._client)),
                tokenizer=Tokenizer(MODEL, FourCharacters()),
                max_parallel_insert=1,  # in order of time
            )
            await self._library.initialize_storages()

        return self._library

    async def ingest(self, chunks: list[dict[str, Any]]) -> int:
        library = await self._open()
        fresh: dict[str, str] = {}
        for chunk in chunks:
            # LightRAG takes a text once: a second chunk of the same text shares its document.
            document = self._documents.setdefault(chunk["text"].strip(), chunk["id"])
            known = self._turns.setdefault(document, [])
            known += [turn for turn in chunk["turn_ids"] if turn not in known]
            fresh[document] = chunk["text"]

        ids = list(fresh)
        await library.ainsert([fresh[document] for document in ids], ids=ids, file_paths=ids)
        states = await library.aget_docs_by_ids(ids)
        return sum(states.get(document, {}).get("status") != "processed" for document in ids)

    async def search(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        if not self._turns:
            return []

        library = await self._open()
        count = body["top_k"]
        asked = QueryParam(mode=MODES[0], top_k=count, chunk_top_k=count, enable_rerank=False)
        found = (await library.aquery_data(body["query"], asked)).get("data", {})

        # The three lists of LightRAG by turns, a chunk first: each is best first.
        chunks = [(one["content"], one["chunk_id"]) for one in found.get("chunks", [])]
        entities = [
            (f"{one['entity_name']}: {one['description']}", one["source_id"])
            for one in found.get("entities", [])
        ]
        relations = [
            (f"{one['src_id']} and {one['tgt_id']}: {one['description']}", one["source_id"])
            for one in found.get("relationships", [])
        ]
        rows = itertools.zip_longest(chunks, relations, entities)
        ranked = [one for one in itertools.chain.from_iterable(rows) if one is not None]
        return [
            {"text": text, "turn_ids": await self._turns_of(library, sources)}
            for text, sources in ranked[:count]
        ]

    async def _turns_of(self, library: LightRAG, sources: str) -> list[str]:
        """The turns of the chunks that a result rests on."""
        turns: dict[str, None] = {}
        for source in sources.split(SEPARATOR):
            stored = await library.text_chunks.get_by_id(source)
            if stored is not None:
                turns.update(dict.fromkeys(self._turns[stored["full_doc_id"]]))

        return list(turns)

    async def close(self) -> None:
        if self._library is not None:
            await self._library.finalize_storages()
            shutil.rmtree(Path(FOLDER.name) / self._library.workspace)


if __name__ == "__main__":
    logging.disable(logging.INFO)
    serve(Graph)
