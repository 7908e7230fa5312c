"""The mem0ai library itself: in this process with its store in memory, or as the client of its
hosted API.
"""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from memeval.errors import MemevalError, StorageError, require_library
from memeval.llm.keys import key_of
from memeval.llm.metering import current_ledger
from memeval.records import (
    Answer,
    CorrectRequest,
    ForgetRequest,
    IngestHealth,
    MemoryChunk,
    Query,
    Retrieved,
    Role,
    Usage,
    format_time,
)
from memeval.retrieval.dense import embed
from memeval.retrieval.embedding.contract import Embedder
from memeval.retrieval.vectors import load_vectors
from memeval.systems.base import (
    ANSWER,
    INGEST,
    RUNTIME,
    DumpItem,
    RecallSystem,
    SystemContext,
    SystemSettings,
)
from memeval.systems.chunk_file import iso_time, read_chunks, read_state, write_chunks, write_state
from memeval.systems.external.mem0_cloud import HOST, CloudMemory
from memeval.systems.external.mem0_library import (
    Mem0Bridge,
    check_graph,
    describe_search,
    has_entities,
    new_memory,
    prepare_import,
)
from memeval.systems.forgetting import correct_in, forget_in
from memeval.text.shown import one_line

_log = logging.getLogger(__name__)

ROWS_FILE, VECTORS_FILE = "memories.json", "memories.npy"
OWN_USER = "case"
"""mem0's id of a case's only user: the case's own id differs at each of its checkpoints."""


@dataclass(frozen=True)
class Mem0Settings(SystemSettings):
    mode: Literal["library", "cloud"] = field(default="library", metadata=INGEST)
    """`library` runs in this process; `cloud` sends the conversation to mem0's hosted API, with a
    key.
    """
    infer: bool | None = field(default=None, metadata=INGEST)
    """False stores each chunk verbatim and calls no model. True lets the cell's model extract
    memories, with one call per chunk (mode=cloud: mem0's own model). None extracts if there is a
    language model, as mem0 does, and otherwise stores verbatim.
    """
    graph_memory: bool = field(default=False, metadata=INGEST)
    """Whether mem0 keeps a graph of entities and relations in addition to the memories. mem0ai 2
    does not have a graph memory, so true is refused.
    """
    threshold: float = field(default=0.1, metadata=ANSWER | {"least": 0, "most": 1})
    """Memories less similar to the question are not retrieved; 0.1 is mem0's own default."""
    host: str | None = field(default=None, metadata=INGEST)
    """URL of the API for mode=cloud; None uses mem0's own."""
    api_key_env: str = field(default="MEM0_API_KEY", metadata=RUNTIME)
    """Environment variable that contains the key for mode=cloud."""

    @property
    def own_server(self) -> bool:
        return self.mode == "cloud"


class Mem0(RecallSystem):
    """Adds the chunks in order and searches with mem0's own scoring.

    Chunks wait until `consolidate`, because the embedder is fitted on all of them; their vectors
    are then computed in one batch. The metadata of a memory contains the turn ids and the date of
    the chunk that it came from.
    """

    settings_type = Mem0Settings
    settings: Mem0Settings
    _memory: Any = None
    _cloud: CloudMemory | None = None

    def __init__(self, settings: Mem0Settings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self._key = ""
        if settings.own_server:
            host = settings.host or HOST
            self._key = key_of(settings.api_key_env, host, "system=mem0 system.mode=cloud")

        self._searching = asyncio.Lock()
        self.reset()

    @classmethod
    def resolve_settings(cls, settings: Mem0Settings, *, has_language_model: bool) -> Mem0Settings:
        """Decides `infer`: mem0 extracts if it has a model, and its hosted API always has one.

        Raises `UserError` if the library is not installed, or lacks what the settings need.
        """
        require_library("mem0", "system 'mem0' needs the mem0ai library", "mem0")
        if settings.graph_memory:
            check_graph()
        if settings.infer is not None:
            return settings

        return replace(settings, infer=has_language_model or settings.mode == "cloud")

    @classmethod
    def knows_users(cls, settings: Any) -> bool:
        return bool(settings.mode == "library")

    @classmethod
    def flags(cls, settings: Any) -> tuple[str, ...]:
        """`verbatim` without extraction: then the figures measure only mem0's search."""
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
        self._added = self._loaded = 0
        self._ids: list[str] = []
        # Texts that are stored, each with mem0's id of its user.
        self._texts: set[tuple[str, str]] = set()
        self._lost: set[int] = set()
        self._bridge: Mem0Bridge | None = None

    async def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)

    def consolidate(self) -> None:
        if self.settings.own_server:
            self._upload()
            return

        texts = [chunk.text for chunk in self._chunks]
        embedder = self.parts.embedder.fitted(texts)
        if self._bridge is not None:
            bridge = self._move(self._bridge, embedder)
        else:
            bridge = self._begin(embedder, texts)

        new = texts[self._added :]
        if new and not self.settings.infer and not bridge.known:
            vectors = self.parts.run_sync(embed(embedder, new))
            bridge.known = dict(zip(new, vectors, strict=True))

        for number in range(self._added, len(self._chunks)):
            chunk = self._chunks[number]
            bridge.observed = chunk.time
            try:
                is_whole = self._add(chunk, bridge)
            except Exception as error:
                if bridge.failure is not None:
                    raise bridge.failure from error
                raise

            if bridge.failure is not None:
                raise bridge.failure
            if not is_whole:
                self._lost.add(number)

        self._added = len(self._chunks)
        # The vectors of a whole conversation need not be kept in memory.
        bridge.known = {}

    def _begin(self, embedder: Embedder, texts: Sequence[str]) -> Mem0Bridge:
        """Opens the empty memory of a case."""
        # mem0's store needs a width, which is known once something has been embedded. Verbatim, all
        # vectors are computed in one batch. With extraction the stored texts are not known yet.
        first = texts[:1] if self.settings.infer else texts
        width, vectors = embedder.width, None
        if first:
            vectors = self.parts.run_sync(embed(embedder, first))
            width = vectors.shape[1]

        bridge = self._open(embedder, width)
        if vectors is not None and not self.settings.infer:
            bridge.known = dict(zip(first, vectors, strict=True))

        return bridge

    def _move(self, before: Mem0Bridge, embedder: Embedder) -> Mem0Bridge:
        """Copies the stored entries into a new memory, whose embedder was fitted again.

        So a memory continues the same way whether it was saved in between or not: for the next
        extraction, mem0 keeps its latest messages, which are not saved.
        """
        rows = self._rows()
        payloads, texts, vectors = [], [], []
        self._texts = set()
        for row in rows:
            payloads.append(row.payload)
            texts.append(row.payload["data"])
            vectors.append(row.vector)
            self._texts.add((row.payload["user_id"], row.payload["data"]))

        width = len(rows[0].vector) if rows else embedder.width
        bridge = self._open(embedder, width)
        if embedder is not before.embedder:
            vectors = bridge.vectors_of(texts)

        bridge.unparsed = before.unparsed
        self._insert(vectors, payloads)
        return bridge

    def _insert(self, vectors: Sequence[Sequence[float]], payloads: Sequence[Any]) -> None:
        """Stores earlier entries again, under their ids."""
        if self._ids:
            ids = list(self._ids)
            self._memory.vector_store.insert(vectors=vectors, payloads=payloads, ids=ids)

    def forget(self, request: ForgetRequest) -> int:
        """Deletes the memories that the request covers, with mem0's own `delete`."""
        if self._cloud is not None:
            return forget_in(self._cloud.texts(), request, self._cloud.delete)

        return forget_in(self._texts_of(request.user), request, self._delete)

    def _delete(self, name: str) -> None:
        self._memory.delete(name)
        self._ids.remove(name)

    def correct(self, request: CorrectRequest) -> int:
        """Replaces the old value in the memories that contain it, with mem0's own `update`."""
        if self._cloud is not None:
            return len(correct_in(self._cloud.texts(), request, self._cloud.update))

        return len(correct_in(self._texts_of(request.user), request, self._memory.update))

    def health(self) -> IngestHealth | None:
        """Counts as lost the chunks of which a memory, or the model's reply, was lost."""
        # The host reports its failures itself.
        if self.settings.own_server:
            return None

        # Like the losses, this count leaves out the chunks of a loaded memory.
        asked, lost = len(self._chunks) - self._loaded, len(self._lost)
        return IngestHealth(asked=asked, stored=asked - lost, lost=lost)

    def dump(self) -> list[DumpItem] | None:
        """The extracted memories. Chunks that were stored verbatim are not mem0's own work."""
        if self._memory is None or not self.settings.infer:
            return None

        items: list[DumpItem] = []
        for row in self._rows():
            text, turn_ids = row.payload["data"], list(row.payload["turn_ids"])
            time = row.payload["date"]
            items.append({"kind": "fact", "text": text, "turn_ids": turn_ids, "time": time})

        return items

    def _upload(self) -> None:
        prepare_import()
        new = self._chunks[self._added :]
        if self._cloud is None:
            # mem0 refuses ids with spaces.
            case = re.sub(r"[^A-Za-z0-9_.-]+", "-", self.parts.case_id) or OWN_USER
            self._cloud = CloudMemory(self.settings.host or HOST, self._key, case)

        try:
            self._cloud.add(new, infer=bool(self.settings.infer))
        except BaseException:
            # The engine closes only a memory that was built completely.
            self.close()
            raise

        self._added = len(self._chunks)
        self._meter_unreported(Role.INGEST, len(new))

    def _meter_unreported(self, role: Role, calls: int) -> None:
        """Meters calls whose tokens the host does not report. Unknown is not zero."""
        if calls:
            usage = Usage(role, model="mem0", provider="mem0", calls=calls)
            current_ledger().usages.append(usage)

    def _open(self, embedder: Embedder, width: int) -> Mem0Bridge:
        """Opens an empty mem0 memory over an embedder that was fitted on the chunks."""
        self.close()
        self._bridge = Mem0Bridge(embedder, self.parts, width)
        # The width is 0 if there is no text. Then nothing will be stored, and any width works.
        self._memory = new_memory(self._bridge, width or 1)
        return self._bridge

    def _add(self, chunk: MemoryChunk, bridge: Mem0Bridge) -> bool:
        """Adds a chunk; returns whether every memory of it is stored."""
        bridge.expected, bridge.readable = (), True
        self._store(chunk.text, chunk, infer=bool(self.settings.infer))
        wanted: Sequence[str] = bridge.expected
        # mem0 silently drops a memory whose vector could not be computed or that its store refused.
        # Such a memory is added a second time.
        user = chunk.user or OWN_USER
        missing = [text for text in dict.fromkeys(wanted) if (user, text) not in self._texts]
        for text in missing:
            try:
                self._store(text, chunk, infer=False)
            except StorageError:
                raise
            # mem0 may raise anything, and the caller counts the loss.
            except Exception as error:  # noqa: BLE001
                _log.warning("mem0 lost a memory: %s", one_line(error))

        return bridge.readable and all((user, text) in self._texts for text in missing)

    def _store(self, text: str, chunk: MemoryChunk, *, infer: bool) -> None:
        """Adds a text to mem0 and notes the memories that mem0 stored."""
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

    async def recall(self, query: Query, depth: int) -> list[Retrieved]:
        text = query.text.strip()
        if self._cloud is not None:
            if not text or not self._chunks:
                return []

            hits = await self._cloud.search(text, depth, self.settings.threshold)
            self._meter_unreported(Role.EMBED, 1)
            return list(map(self._entry, hits))

        if not text or not self._ids or self._bridge is None:
            return []

        own = current_ledger().own
        with own.computing():
            vector = await self._bridge.query_vector(text)

        # The bridge keeps the vector of one query, so searches run one after the other.
        with own.excluded():
            async with self._searching:
                self._bridge.known = {text: vector}
                result = await own.in_worker(self._search, text, depth, query.user)

        return list(map(self._entry, result["results"]))

    def _search(self, text: str, depth: int, user: str) -> Any:
        self._memory.vector_store.keeps_users = bool(user)
        filters, threshold = {"user_id": user or OWN_USER}, self.settings.threshold
        return self._memory.search(text, filters=filters, top_k=depth, threshold=threshold)

    def _entry(self, row: Mapping[str, Any]) -> Retrieved:
        metadata, text = row["metadata"], row["memory"]
        time = None
        if metadata["date"]:
            time = datetime.fromisoformat(metadata["date"])
            # The text of a chunk stored verbatim has its date already.
            if self.settings.infer:
                text = f"[{format_time(time)}] {text}"

        return Retrieved(
            text=text, turn_ids=tuple(metadata["turn_ids"]), score=row["score"], time=time
        )

    async def answer(self, query: Query) -> Answer:
        return replace(await super().answer(query), notes=self._notes())

    def _notes(self) -> dict[str, Any]:
        if self.settings.own_server:
            return {"mem0_mode": "cloud", "mem0_usage": "not reported by the host"}

        notes: dict[str, Any] = {"mem0_search": describe_search()}
        if self._bridge and self._bridge.unparsed:
            notes["mem0_unparsed_replies"] = self._bridge.unparsed

        return notes

    def save(self, folder: Path) -> None:
        if self.settings.own_server:
            raise NotImplementedError("a memory on mem0's host is deleted after its run")
        if has_entities():
            raise NotImplementedError("mem0's entity store can't be saved")

        memories, vectors = [], []
        for row in self._rows():
            memories.append({"id": str(row.id), "payload": row.payload})
            vectors.append(row.vector)

        unparsed = self._bridge.unparsed if self._bridge else 0
        write_state(folder / ROWS_FILE, {"unparsed": unparsed, "memories": memories})
        matrix = np.array(vectors, dtype=np.float32)
        np.save(folder / VECTORS_FILE, matrix, allow_pickle=False)
        write_chunks(folder, self._chunks)

    def _rows(self) -> list[Any]:
        """The rows of mem0's store, in the order in which they were added."""
        store = self._memory.vector_store
        # Without the sparse vectors of the keyword search, which mem0 computes from the texts.
        rows = store.client.retrieve(
            store.collection_name, self._ids, with_payload=True, with_vectors=[""]
        )
        by_id = {str(row.id): row for row in rows}
        return [by_id[name] for name in self._ids]

    def _texts_of(self, user: str) -> dict[str, str]:
        """The texts of a user's memories, by mem0's ids."""
        texts = {}
        for row in self._rows():
            if row.payload["user_id"] == (user or OWN_USER):
                texts[str(row.id)] = row.payload["data"]

        return texts

    def load(self, folder: Path) -> None:
        self.reset()
        self._chunks = read_chunks(folder)
        state = read_state(folder / ROWS_FILE)
        memories = state["memories"]
        vectors = load_vectors(folder / VECTORS_FILE, len(memories), "memories")
        embedder = self.parts.embedder.fitted([chunk.text for chunk in self._chunks])
        width = vectors.shape[1] if memories else embedder.width
        bridge = self._open(embedder, width)
        bridge.unparsed = state["unparsed"]

        payloads, self._ids = [], []
        for row in memories:
            payloads.append(row["payload"])
            self._ids.append(row["id"])

        self._added = self._loaded = len(self._chunks)
        self._insert(vectors.tolist(), payloads)

    def close(self) -> None:
        if self._memory is not None:
            self._memory.vector_store.client.close()
            self._memory.close()

        if self._cloud is not None:
            self._cloud.close()

        self._memory = self._cloud = None
