"""The installed mem0ai library: its active parts, a new memory, its calls to the cell's models."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memeval.errors import ModelError, UserError
from memeval.llm.contract import ChatPrompt, Completion
from memeval.process import started
from memeval.process.environment import set_environment
from memeval.retrieval.dense import embed
from memeval.retrieval.embedding.contract import Embedder
from memeval.retrieval.vectors import width_error
from memeval.systems.asking import ask_for
from memeval.systems.base import SystemContext

if TYPE_CHECKING:
    from memeval.retrieval.embedding.contract import Vectors

NOTHING = '{"memory": []}'
"""Passed to mem0 in place of a reply that can't be read."""
DATED = re.compile(r"(?m)^(## (?:Observation|Current) Date\n)\d{4}-\d\d-\d\d$")
"""The dates that mem0 writes into its extraction prompt."""


def has_entities() -> bool:
    """Whether mem0's entity search is on: spaCy and its English model are installed."""
    return find_spec("spacy") is not None and find_spec("en_core_web_sm") is not None


@cache
def has_keywords() -> bool:
    """Whether mem0's keyword search is on: fastembed is installed, and loads its model."""
    try:
        import_module("fastembed").SparseTextEmbedding(model_name="Qdrant/bm25")
    except Exception:  # noqa: BLE001 - mem0 also goes on without it
        return False

    return True


def describe_search() -> str:
    """Description of the mem0 searches that are active here."""
    # mem0 silently leaves out a search whose library is not installed.
    searches = ["vectors"]
    missing = []
    for name, library, installed in (
        ("keywords", "fastembed and its model Qdrant/bm25", has_keywords()),
        ("entities", "spaCy with en_core_web_sm", has_entities()),
    ):
        if installed:
            searches.append(name)
        else:
            missing.append(f"{name} (needs {library})")

    running = f"by {' and '.join(searches)}"
    if missing:
        running += f"; not installed: {', '.join(missing)}"

    return running


def check_graph() -> None:
    """Raises `UserError`: no release of mem0ai that memeval works with has a graph memory."""
    raise UserError(
        "system.graph_memory=true needs the graph memory of mem0, but mem0ai "
        f"{version('mem0ai')} does not have it",
        "leave system.graph_memory out",
    )


def prepare_import() -> None:
    """Silences mem0, and keeps it out of the user's home, before it is imported."""
    set_environment()
    # On import, mem0 writes an id of the user into this folder.
    if "MEM0_DIR" not in os.environ:
        os.environ["MEM0_DIR"] = str(started.make_folder("mem0", guarded=False))


def new_memory(bridge: Mem0Bridge, width: int) -> Any:
    """A mem0 memory whose store is kept in RAM."""
    prepare_import()
    from mem0 import Memory  # type: ignore[import-untyped]

    from memeval.systems.external.mem0_plugs import SLOT, plug_in

    plug_in(entities=has_entities())
    store = {"path": ":memory:", "embedding_model_dims": width, "collection_name": "memeval"}
    memory = Memory.from_config(
        {
            "embedder": {"provider": SLOT, "config": {"model": bridge, "embedding_dims": width}},
            "llm": {"provider": SLOT, "config": {"model": bridge}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": ":memory:",
        }
    )
    if not has_keywords():
        # mem0 sets this itself, after a warning.
        memory.vector_store._bm25_encoder = False

    return memory


class Mem0Bridge:
    """Answers mem0's calls with the cell's embedder and model, from mem0's worker thread."""

    def __init__(self, embedder: Embedder, parts: SystemContext, width: int) -> None:
        """`width` is that of the vectors in mem0's store; 0 if none will be stored."""
        self.embedder = embedder
        self.failure: ModelError | None = None
        """The reason why storing has failed. mem0 swallows or wraps the errors of its embedder."""
        self.known: Mapping[str, Vectors] = {}
        """Vectors that were computed before, in one batch."""
        self.observed: datetime | None = None
        """Time of the chunk that is being added."""
        self.unparsed = 0
        """Number of model replies that mem0 can't read and drops silently."""
        self.readable = True
        """False after a chunk for which no reply could be read."""
        self.expected: Sequence[str] = ()
        """Memories in the last reply."""
        self._parts = parts
        self._width = width

    async def query_vector(self, text: str) -> Vectors:
        """The vector of a query. Raises `ModelError` if its width is not that of the store."""
        vector: Vectors = (await embed(self.embedder, [text]))[0]
        if self._width and len(vector) != self._width:
            raise width_error("the query's vector", len(vector), self._width)

        return vector

    def vectors_of(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts; unknown ones are computed in one batch."""
        vectors = dict(self.known)
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if missing:
            made = self._parts.run_sync(embed(self.embedder, missing))
            if self._width and made.shape[1] != self._width:
                self.failure = width_error("a memory's vector", made.shape[1], self._width)
                raise self.failure

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
            self.readable = False
            return NOTHING

        self.expected = _memories(reply) or ()
        return reply

    def _redate(self, message: Mapping[str, str]) -> Mapping[str, str]:
        """The message with the date of the chunk in place of today's."""
        # mem0 writes today's date: the model would read it as the event's date, and the response
        # cache would never hit.
        day = self.observed.date().isoformat() if self.observed else "unknown"
        return {**message, "content": DATED.sub(rf"\g<1>{day}", message["content"])}


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
