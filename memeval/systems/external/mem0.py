"""The real mem0ai library: in this process with its store in memory, or as the client of its hosted
API.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from memeval.embedding.contract import Embedder
from memeval.errors import MemevalError, StorageError, UserError
from memeval.leftovers import temporary
from memeval.llm.contract import ChatPrompt, Completion
from memeval.llm.keys import key_of
from memeval.llm.metering import current_ledger
from memeval.records import (
    Answer,
    IngestHealth,
    MemoryChunk,
    Query,
    Retrieved,
    Role,
    Usage,
    format_time,
)
from memeval.shown import one_line
from memeval.systems.asking import ask_for
from memeval.systems.base import (
    ANSWER,
    INGEST,
    RUNTIME,
    DumpItem,
    RecallSystem,
    SystemContext,
    SystemSettings,
)
from memeval.systems.chunk_file import read_chunks, write_chunks
from memeval.systems.external.mem0_cloud import HOST, CloudMemory

if TYPE_CHECKING:
    from memeval.embedding.contract import Vectors

_log = logging.getLogger(__name__)

ROWS_FILE, VECTORS_FILE = "memories.json", "memories.npy"
QUIET = {
    "MEM0_TELEMETRY": "False",
    "ORT_DISABLE_TELEMETRY": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "HF_HUB_OFFLINE": "1",
}
"""Set before mem0 is imported, unless the user has set them: it sends telemetry by default."""

NOTHING = '{"memory": []}'
"""What mem0 gets in place of a reply that can't be read."""
DATED = re.compile(r"(?m)^(## (?:Observation|Current) Date\n)\d{4}-\d\d-\d\d$")
"""The dates that mem0 writes into its extraction prompt."""


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `mem0`."""

    mode: Literal["library", "cloud"] = field(default="library", metadata=INGEST)
    """`library` runs in this process; `cloud` sends the conversation to mem0's hosted API, with a
    key.
    """
    infer: bool | None = field(default=None, metadata=INGEST)
    """False stores each chunk verbatim and calls no model. True lets the cell's model extract
    memories, with one call per chunk (mode=cloud: mem0's own model). None extracts where there is a
    language model, as mem0 does, and stores verbatim where there is none.
    """
    graph_memory: bool = field(default=False, metadata=INGEST)
    """Whether mem0 keeps a graph of entities and relations beside the memories. mem0ai 2 does not
    have a graph memory, so true is refused.
    """
    threshold: float = field(default=0.1, metadata=ANSWER)
    """Memories less similar to the question are not found; 0.1 is mem0's own default."""
    host: str | None = field(default=None, metadata=INGEST)
    """Address of the API for mode=cloud; None is mem0's own."""
    api_key_env: str = field(default="MEM0_API_KEY", metadata=RUNTIME)
    """Environment variable that holds the key for mode=cloud."""

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UserError(f"system.threshold must be between 0 and 1, but is {self.threshold}")


class Mem0(RecallSystem):
    """Adds the chunks in order, searches by mem0's own scoring.

    Chunks wait until `consolidate`, because the embedder is fitted on all of them; their vectors
    are then made in one batch. A memory is mapped back by the metadata of its `add`: the turn ids
    and the date of the chunk that it came from.
    """

    settings_type = Settings
    settings: Settings
    _memory: Any = None
    _cloud: CloudMemory | None = None

    def __init__(self, settings: Settings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        if find_spec("mem0") is None:
            raise UserError(
                "system 'mem0' needs the mem0ai library, which is not installed",
                "get it: pip install 'memeval[mem0]'",
            )

        self._user = re.sub(r"[^A-Za-z0-9_.-]+", "-", parts.case_id) or "case"
        self._key = (
            key_of(settings.api_key_env, settings.host or HOST, "system=mem0 system.mode=cloud")
            if self._hosted
            else ""
        )
        self._searching = asyncio.Lock()
        self.reset()

    @property
    def _hosted(self) -> bool:
        return bool(self.settings.mode == "cloud")

    @classmethod
    def resolve_settings(cls, settings: Settings, *, has_language_model: bool) -> Settings:
        """Decides `infer`: mem0 extracts wherever there is a model. mem0's host has its own."""
        if settings.graph_memory:
            check_graph()
        if settings.infer is not None:
            return settings

        return replace(settings, infer=has_language_model or settings.mode == "cloud")

    @classmethod
    def flags(cls, settings: Any) -> tuple[str, ...]:
        """`verbatim` where nothing is extracted: the figures are those of mem0's search alone."""
        return () if settings.infer else ("verbatim",)

    @classmethod
    def needs_language_model(cls, settings: Any) -> bool:
        return bool(settings.infer and settings.mode == "library")

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return bool(settings.infer and settings.mode == "library")

    def reset(self) -> None:
        self.close()
        self._chunks: list[MemoryChunk] = []
        self._ids: list[str] = []
        self._texts: set[str] = set()
        self._lost: set[int] = set()
        self._bridge: _Bridge | None = None

    async def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)

    def consolidate(self) -> None:
        if self._hosted:
            self._upload()
            return

        texts = [chunk.text for chunk in self._chunks]
        embedder = self.parts.embedder.fitted(texts)
        # mem0's store needs a width, which is known once something has been embedded.
        first = texts[:1] if self.settings.infer else texts
        vectors = self.parts.run_sync(embedder.embed(first)) if first else None
        width = embedder.width if vectors is None else vectors.shape[1]

        bridge = self._open(embedder, width)
        if vectors is not None and not self.settings.infer:
            bridge.known = dict(zip(first, vectors, strict=True))

        for number, chunk in enumerate(self._chunks):
            bridge.observed = chunk.time
            if not self._add(chunk, bridge):
                self._lost.add(number)

        bridge.known = {}

    def health(self) -> IngestHealth | None:
        """Chunks of which a memory, or the model's reply, was lost.

        The host reports its failures itself.
        """
        if self._hosted:
            return None

        asked, lost = len(self._chunks), len(self._lost)
        return IngestHealth(asked=asked, stored=asked - lost, lost=lost)

    def dump(self) -> list[DumpItem]:
        """The memories that were extracted; chunks stored verbatim are nothing of mem0's own."""
        if self._memory is None or not self.settings.infer:
            return []

        items: list[DumpItem] = []
        for row in self._stored():
            payload = row.payload
            items.append(
                {
                    "kind": "fact",
                    "text": payload["data"],
                    "turn_ids": list(payload["turn_ids"]),
                    "time": payload["date"],
                }
            )

        return items

    def _upload(self) -> None:
        prepare_import()
        self.close()
        self._cloud = CloudMemory(self.settings.host or HOST, self._key, self._user)
        try:
            self._cloud.add(self._chunks, infer=bool(self.settings.infer))
        except BaseException:
            # The engine closes only a memory that was built completely.
            self.close()
            raise

        self._unreported(Role.INGEST, len(self._chunks))

    def _unreported(self, role: Role, calls: int) -> None:
        """Meters calls whose tokens the host does not report: unknown, which is not zero."""
        if calls:
            current_ledger().usages.append(Usage(role, "mem0", "mem0", None, None, calls=calls))

    def _open(self, embedder: Embedder, width: int) -> _Bridge:
        """A fresh mem0 over an embedder that was fitted on the chunks."""
        self.close()
        self._bridge = _Bridge(embedder, self.parts)
        # Without a width nothing was said, and nothing will be stored.
        self._memory = _new_memory(self._bridge, width or 1)
        return self._bridge

    def _add(self, chunk: MemoryChunk, bridge: _Bridge) -> bool:
        """Adds a chunk; returns whether all that was to be kept of it is stored.

        mem0 silently drops a memory whose vector could not be made or that its store refused. Such
        a memory is added a second time.
        """
        bridge.expected, bridge.readable = (), True
        self._stored_rows(chunk.text, chunk, infer=bool(self.settings.infer))
        wanted: Sequence[str] = bridge.expected
        missing = [text for text in dict.fromkeys(wanted) if text not in self._texts]
        for text in missing:
            try:
                self._stored_rows(text, chunk, infer=False)
            except StorageError:
                raise
            except Exception as error:  # noqa: BLE001 - mem0 may raise anything; the loss is counted
                _log.warning("mem0 lost a memory: %s", one_line(error))

        return bridge.readable and all(text in self._texts for text in missing)

    def _stored_rows(self, text: str, chunk: MemoryChunk, *, infer: bool) -> None:
        """Lets mem0 add a text, and notes the memories that it stored."""
        date = chunk.time.isoformat() if chunk.time else None
        metadata = {"turn_ids": list(chunk.turn_ids), "date": date, "created_at": date or "unknown"}
        try:
            added = self._memory.add(text, user_id=self._user, metadata=metadata, infer=infer)
        except Exception as error:
            # mem0 wraps what the model raised.
            if isinstance(error.__cause__, MemevalError):
                raise error.__cause__ from error

            raise

        self._ids += [row["id"] for row in added["results"]]
        self._texts.update(row["memory"] for row in added["results"])

    async def recall(self, query: Query, depth: int) -> list[Retrieved]:
        text = query.text.strip()
        if self._cloud is not None:
            if not text or not self._chunks:
                return []

            hits = await self._cloud.search(text, depth, self.settings.threshold)
            self._unreported(Role.EMBED, 1)
            return [self._entry(row) for row in hits]

        if not text or not self._ids or self._bridge is None:
            return []

        vectors = await self._bridge.embedder.embed([text])
        async with self._searching:
            self._bridge.known = {text: vectors[0]}
            found = await asyncio.to_thread(
                self._memory.search,
                text,
                filters={"user_id": self._user},
                top_k=depth,
                threshold=self.settings.threshold,
            )

        return [self._entry(row) for row in found["results"]]

    def _entry(self, row: Mapping[str, Any]) -> Retrieved:
        metadata, text = row["metadata"], row["memory"]
        time = datetime.fromisoformat(metadata["date"]) if metadata["date"] else None

        # The text of a chunk stored verbatim has its date already.
        if self.settings.infer and time:
            text = f"[{format_time(time)}] {text}"

        return Retrieved(
            text=text, turn_ids=tuple(metadata["turn_ids"]), score=row["score"], time=time
        )

    async def answer(self, query: Query) -> Answer:
        return replace(await super().answer(query), notes=self._notes())

    def _notes(self) -> dict[str, Any]:
        if self._hosted:
            return {"mem0_mode": "cloud", "mem0_usage": "not reported by the host"}

        notes: dict[str, Any] = {"mem0_search": describe_search()}
        if self._bridge and self._bridge.unparsed:
            notes["mem0_unparsed_replies"] = self._bridge.unparsed

        return notes

    def save(self, folder: Path) -> None:
        if self._hosted:
            raise NotImplementedError("a memory on mem0's host is deleted with its run")
        if has_entities():
            raise NotImplementedError("mem0's entity store can't be saved")

        rows = self._stored()
        payloads = [{"id": str(row.id), "payload": row.payload} for row in rows]
        state = {"unparsed": self._bridge.unparsed if self._bridge else 0, "memories": payloads}
        (folder / ROWS_FILE).write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")
        np.save(
            folder / VECTORS_FILE,
            np.array([row.vector for row in rows], dtype=np.float32),
            allow_pickle=False,
        )
        write_chunks(folder, self._chunks)

    def _stored(self) -> list[Any]:
        """The rows of mem0's store, in the order in which they were added."""
        store = self._memory.vector_store
        rows = store.client.retrieve(
            store.collection_name, self._ids, with_payload=True, with_vectors=True
        )
        by_id = {str(row.id): row for row in rows}
        return [by_id[name] for name in self._ids]

    def load(self, folder: Path) -> None:
        self.reset()
        self._chunks = read_chunks(folder)
        state = json.loads((folder / ROWS_FILE).read_text(encoding="utf-8"))
        vectors = np.load(folder / VECTORS_FILE, allow_pickle=False)
        embedder = self.parts.embedder.fitted([chunk.text for chunk in self._chunks])
        stored = vectors.ndim > 1 and len(vectors) > 0
        bridge = self._open(embedder, vectors.shape[1] if stored else embedder.width)
        bridge.unparsed = state["unparsed"]
        self._ids = [row["id"] for row in state["memories"]]
        if len(vectors) != len(self._ids):
            raise ValueError(
                f"{folder / VECTORS_FILE} holds {len(vectors)} vectors "
                f"for {len(self._ids)} memories"
            )

        if self._ids:
            payloads = [row["payload"] for row in state["memories"]]
            self._memory.vector_store.insert(
                vectors=vectors.tolist(), payloads=payloads, ids=self._ids
            )

    def close(self) -> None:
        if self._memory is not None:
            self._memory.vector_store.client.close()
            self._memory.close()

        if self._cloud is not None:
            self._cloud.close()

        self._memory = self._cloud = None


class _Bridge:
    """What mem0's embedder and model call: the cell's parts, awaited from mem0's worker thread."""

    def __init__(self, embedder: Embedder, parts: SystemContext) -> None:
        self.embedder = embedder
        self.known: Mapping[str, Vectors] = {}
        """Vectors made beforehand, in a batch."""
        self.observed: datetime | None = None
        """When the chunk that is being added was said."""
        self.unparsed = 0
        """Replies of the model that mem0 can't read, and drops silently."""
        self.readable = True
        """False after a chunk for which no reply could be read."""
        self.expected: Sequence[str] = ()
        """Memories that the last reply names."""
        self._parts = parts

    def vectors_of(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts: those made beforehand, and the missing ones in one batch."""
        vectors = dict(self.known)
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if missing:
            made = self._parts.run_sync(self.embedder.embed(missing))
            vectors |= zip(missing, made, strict=True)

        return [vectors[text].tolist() for text in texts]

    def reply_to(self, messages: Sequence[Mapping[str, str]], options: Mapping[str, Any]) -> str:
        """The model's reply to mem0's prompt; an empty list of memories where none is readable."""
        prompt = ChatPrompt(tuple(self._dated(message) for message in messages), options)
        reply: str | None = self._parts.run_sync(
            ask_for(self._parts.model, prompt, seed=self._parts.seed, read=_readable)
        )
        if reply is None:
            self.unparsed += 1
            self.readable = False
            return NOTHING

        self.expected = _memories(reply) or ()
        return reply

    def _dated(self, message: Mapping[str, str]) -> Mapping[str, str]:
        """The message with the date on which the chunk was said, in place of today's.

        mem0 writes today's date: the model would read it as the event's date, and the response
        cache would never hit.
        """
        day = self.observed.date().isoformat() if self.observed else "unknown"
        return {**message, "content": DATED.sub(rf"\g<1>{day}", message["content"])}


def has_entities() -> bool:
    """Whether mem0's entity search is on: spaCy and its English model are installed."""
    return find_spec("spacy") is not None and find_spec("en_core_web_sm") is not None


def has_keywords() -> bool:
    """Whether mem0's keyword search is on: fastembed is installed."""
    return find_spec("fastembed") is not None


def describe_search() -> str:
    """Which of mem0's three searches run here.

    mem0 leaves out, without a word, a search whose library is not installed.
    """
    searches = ["vectors"]
    missing = []
    for name, library, installed in (
        ("keywords", "fastembed", has_keywords()),
        ("entities", "spaCy with en_core_web_sm", has_entities()),
    ):
        if installed:
            searches.append(name)
        else:
            missing.append(f"{name} (needs {library})")

    said = f"by {' and '.join(searches)}"
    return f"{said}; not installed: {', '.join(missing)}" if missing else said


def check_graph() -> None:
    """Raises `UserError`: no release of mem0ai that memeval works with has a graph memory."""
    try:
        release = version("mem0ai")
    except PackageNotFoundError:
        release = "of this machine"

    raise UserError(
        "system.graph_memory=true needs the graph memory of mem0, but mem0ai "
        f"{release} does not have it",
        "leave system.graph_memory out",
    )


def prepare_import() -> None:
    """Makes mem0 quiet, and keeps it out of the user's home, before it is imported."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)

    # mem0 writes an identity of the user when it is imported.
    if "MEM0_DIR" not in os.environ:
        os.environ["MEM0_DIR"] = str(temporary("mem0"))


def _new_memory(bridge: _Bridge, width: int) -> Any:
    """A mem0 memory of its own, held in memory."""
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


def _readable(completion: Completion) -> str | None:
    """The reply where mem0 can read it; None where mem0 would drop it, or fail on it."""
    return completion.text if _memories(completion.text) is not None else None


def _memories(reply: str) -> list[str] | None:
    """The memories that a reply names, as mem0 reads it; None for a reply of another form.

    An empty object names none.
    """
    from memeval.systems.external.mem0_plugs import json_of

    try:
        value = json.loads(json_of(reply), strict=False)
    except (ValueError, RecursionError):
        return None

    if not isinstance(value, dict):
        return None

    rows = value.get("memory", None if value else [])
    if not isinstance(rows, list):
        return None
    if not all(isinstance(row, dict) and isinstance(row.get("text", ""), str) for row in rows):
        return None

    return [row["text"] for row in rows if row.get("text")]
