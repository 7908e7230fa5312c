"""One case's memories in the mem0ai library, which calls the cell's embedder and model."""

import asyncio
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from memeval.errors import MemevalError, ModelError, StorageError
from memeval.llm.contract import ChatPrompt, Completion
from memeval.llm.metering import current_ledger
from memeval.records import MemoryChunk
from memeval.retrieval.dense import embed
from memeval.retrieval.embedding.contract import Embedder, Vectors
from memeval.retrieval.vectors import width_error
from memeval.systems.asking import ask_for
from memeval.systems.base import SystemContext
from memeval.systems.chunk_file import iso_time
from memeval.systems.external.mem0_library import new_memory
from memeval.text.shown import one_line

_log = logging.getLogger(__name__)

OWN_USER = "case"
"""mem0's id of a case's only user: the case's own id differs at each of its checkpoints."""
NOTHING = '{"memory": []}'
"""Passed to mem0 in place of a reply that can't be read."""
DATED = re.compile(r"(?m)^(## (?:Observation|Current) Date\n)\d{4}-\d\d-\d\d$")
"""The dates that mem0 writes into its extraction prompt."""


class LibraryMemory:
    """mem0's store in RAM. mem0 calls `vectors_of` and `reply_to` from its worker thread."""

    def __init__(
        self, embedder: Embedder, parts: SystemContext, width: int, *, infer: bool
    ) -> None:
        """`width` is that of the vectors; 0 if none will be stored. `infer` extracts memories."""
        self.embedder = embedder
        self.known: Mapping[str, Vectors] = {}
        """Vectors that were computed before, in one batch."""
        self.unparsed = 0
        """Number of model replies that mem0 can't read and drops silently."""
        self._parts = parts
        self._width = width
        self._infer = infer
        self._ids: list[str] = []
        # Texts that are stored, each with mem0's id of its user.
        self._texts: set[tuple[str, str]] = set()
        # Why storing has failed: mem0 swallows or wraps the errors of its embedder.
        self._failure: ModelError | None = None
        # Of the chunk that is being added: its time, the memories in the last reply to it, and
        # whether all replies could be read.
        self._time: datetime | None = None
        self._expected: Sequence[str] = ()
        self._readable = True
        self._searching = asyncio.Lock()
        # Without vectors, any width works.
        self._memory = new_memory(self, width or 1)

    def add(self, chunk: MemoryChunk) -> bool:
        """Adds a chunk; returns whether every memory of it is stored."""
        self._time, self._expected, self._readable = chunk.time, (), True
        try:
            is_whole = self._add(chunk)
        except Exception as error:
            if self._failure is not None:
                raise self._failure from error
            raise

        if self._failure is not None:
            raise self._failure
        return is_whole

    def _add(self, chunk: MemoryChunk) -> bool:
        self._store(chunk.text, chunk, infer=self._infer)
        # mem0 silently drops a memory whose vector could not be computed or that its store refused.
        # Such a memory is added a second time.
        user, expected = chunk.user or OWN_USER, dict.fromkeys(self._expected)
        missing = [text for text in expected if (user, text) not in self._texts]
        for text in missing:
            try:
                self._store(text, chunk, infer=False)
            except StorageError:
                raise
            # mem0 may raise anything, and the caller counts the loss.
            except Exception as error:  # noqa: BLE001
                _log.warning("mem0 lost a memory: %s", one_line(error))

        return self._readable and all((user, text) in self._texts for text in missing)

    def _store(self, text: str, chunk: MemoryChunk, *, infer: bool) -> None:
        """Passes text to mem0 and notes the memories that mem0 stored."""
        date = iso_time(chunk.time)
        # Without `created_at`, mem0 would write today's date.
        metadata = {"turn_ids": list(chunk.turn_ids), "date": date, "created_at": date or "unknown"}
        self._memory.vector_store.keeps_users = bool(chunk.user)
        user = chunk.user or OWN_USER
        try:
            added = self._memory.add(text, user_id=user, metadata=metadata, infer=infer)
        except Exception as error:
            # mem0 wraps the error that the model raised.
            if isinstance(error.__cause__, MemevalError):
                raise error.__cause__ from error

            raise

        self._ids += [row["id"] for row in added["results"] if row["id"] not in self._ids]
        self._texts.update((user, row["memory"]) for row in added["results"])

    def insert(
        self,
        ids: Iterable[str],
        payloads: Sequence[Mapping[str, Any]],
        vectors: Sequence[Sequence[float]],
    ) -> None:
        """Stores the rows of an earlier memory in this empty one."""
        self._ids = list(ids)
        self._texts = {(payload["user_id"], payload["data"]) for payload in payloads}
        if self._ids:
            store = self._memory.vector_store
            store.insert(vectors=vectors, payloads=payloads, ids=self._ids)

    def rows(self) -> list[Any]:
        """The rows of mem0's store, in the order in which they were added."""
        store = self._memory.vector_store
        # Without the sparse vectors of the keyword search, which mem0 computes from the texts.
        rows = store.client.retrieve(
            store.collection_name, self._ids, with_payload=True, with_vectors=[""]
        )
        by_id = {str(row.id): row for row in rows}
        return [by_id[name] for name in self._ids]

    def texts(self, user: str) -> dict[str, str]:
        """The texts of a user's memories, by mem0's ids."""
        texts = {}
        for row in self.rows():
            if row.payload["user_id"] == (user or OWN_USER):
                texts[str(row.id)] = row.payload["data"]

        return texts

    def delete(self, name: str) -> None:
        self._memory.delete(name)
        self._ids.remove(name)

    def update(self, name: str, text: str) -> None:
        self._memory.update(name, text)

    async def search(
        self, text: str, top_k: int, threshold: float, user: str
    ) -> Sequence[Mapping[str, Any]]:
        """Memories, best first: `memory`, `score` and `metadata`."""
        if not self._ids:
            return []

        own_work = current_ledger().own_work
        with own_work.computing():
            vector = (await embed(self.embedder, [text]))[0]
            if self._width and len(vector) != self._width:
                raise width_error("the query's vector", len(vector), self._width)

        # `known` has the vector of one query, so searches run one after the other.
        with own_work.excluded():
            async with self._searching:
                self.known = {text: vector}
                return await own_work.in_worker(self._search, text, top_k, threshold, user)

    def _search(self, text: str, top_k: int, threshold: float, user: str) -> Any:
        self._memory.vector_store.keeps_users = bool(user)
        filters = {"user_id": user or OWN_USER}
        reply = self._memory.search(text, filters=filters, top_k=top_k, threshold=threshold)
        return reply["results"]

    def vectors_of(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts; unknown ones are computed in one batch."""
        vectors = dict(self.known)
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if missing:
            made = self._parts.run_sync(embed(self.embedder, missing))
            if self._width and made.shape[1] != self._width:
                self._failure = width_error("a memory's vector", made.shape[1], self._width)
                raise self._failure

            vectors |= zip(missing, made, strict=True)

        return [vectors[text].tolist() for text in texts]

    def reply_to(self, messages: Sequence[Mapping[str, str]], options: Mapping[str, Any]) -> str:
        """The model's reply to mem0's prompt; an empty list of memories if it is unreadable."""
        prompt = ChatPrompt(tuple(map(self._redate, messages)), options)
        reply: str | None = self._parts.run_sync(
            ask_for(self._parts.model, prompt, seed=self._parts.seed, read=_readable_reply)
        )
        if reply is None:
            self.unparsed += 1
            self._readable = False
            return NOTHING

        self._expected = _memories(reply) or ()
        return reply

    def _redate(self, message: Mapping[str, str]) -> Mapping[str, str]:
        """The message with the date of the chunk in place of today's."""
        # mem0 writes today's date: the model would read it as the event's date, and the response
        # cache would never hit.
        day = self._time.date().isoformat() if self._time else "unknown"
        return {**message, "content": DATED.sub(rf"\g<1>{day}", message["content"])}

    def close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.close()


def _readable_reply(completion: Completion) -> str | None:
    """The reply if mem0 can read it; None if mem0 would drop it or fail on it."""
    if _memories(completion.text) is None:
        return None

    return completion.text


def _memories(reply: str) -> list[str] | None:
    """The memories in a reply as mem0 reads it; None if mem0 can't read it."""
    from mem0.memory.utils import (  # type: ignore[import-untyped]
        extract_json,
        remove_code_blocks,
    )

    try:
        value = json.loads(extract_json(remove_code_blocks(reply)), strict=False)
    except (ValueError, RecursionError):
        return None

    if not isinstance(value, dict):
        return None

    # mem0 accepts an empty object, as a reply without memories.
    rows = value.get("memory") if value else []
    if not isinstance(rows, list):
        return None
    if not all(isinstance(row, dict) and isinstance(row.get("text", ""), str) for row in rows):
        return None

    return [row["text"] for row in rows if row.get("text")]
