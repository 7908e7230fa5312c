"""The mem0ai library itself: in this process with its store in memory, or as the client of its
hosted API.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from memeval.errors import require_library
from memeval.llm.keys import key_of
from memeval.records import (
    Answer,
    CorrectRequest,
    ForgetRequest,
    IngestHealth,
    MemoryChunk,
    Query,
    Retrieved,
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
from memeval.systems.chunk_file import read_chunks, read_state, write_chunks, write_state
from memeval.systems.external.mem0_cloud import HOST, CloudMemory
from memeval.systems.external.mem0_library import (
    check_graph,
    describe_search,
    has_entities,
    prepare_import,
)
from memeval.systems.external.mem0_memory import LibraryMemory
from memeval.systems.forgetting import correct_in, forget_in

ROWS_FILE, VECTORS_FILE = "memories.json", "memories.npy"


@dataclass(frozen=True)
class Mem0Settings(SystemSettings):
    mode: Literal["library", "cloud"] = field(default="library", metadata=INGEST)
    """`library` runs in this process; `cloud` sends the conversation to mem0's API, with a key."""
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
    _library: LibraryMemory | None = None
    _cloud: CloudMemory | None = None

    def __init__(self, settings: Mem0Settings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self._key = ""
        if settings.own_server:
            host = settings.host or HOST
            self._key = key_of(settings.api_key_env, host, "system=mem0 system.mode=cloud")

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

    @property
    def _memory(self) -> LibraryMemory | CloudMemory | None:
        return self._cloud or self._library

    def reset(self) -> None:
        self.close()
        self._chunks: list[MemoryChunk] = []
        self._added = self._loaded = 0
        self._lost: set[int] = set()

    async def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)

    def consolidate(self) -> None:
        if self.settings.own_server:
            self._upload()
            return

        texts = [chunk.text for chunk in self._chunks]
        new = texts[self._added :]
        embedder = self.parts.embedder.fitted(texts)
        if self._library is None:
            memory = self._begin(embedder, new)
        else:
            memory = self._move(self._library, embedder)
            if not self.settings.infer:
                memory.known = self._embed(embedder, new)

        for number in range(self._added, len(self._chunks)):
            if not memory.add(self._chunks[number]):
                self._lost.add(number)

        self._added = len(self._chunks)
        # The vectors of a whole conversation need not be kept in memory.
        memory.known = {}

    def _begin(self, embedder: Embedder, texts: Sequence[str]) -> LibraryMemory:
        """Opens the empty memory of a case."""
        # mem0's store needs a width, which is known once something has been embedded. Verbatim, all
        # vectors are computed in one batch. With extraction the stored texts are not known yet.
        known = self._embed(embedder, texts[:1] if self.settings.infer else texts)
        memory = self._open(embedder, len(known[texts[0]]) if known else embedder.width)
        if not self.settings.infer:
            memory.known = known

        return memory

    def _embed(self, embedder: Embedder, texts: Sequence[str]) -> dict[str, Any]:
        if not texts:
            return {}

        vectors = self.parts.run_sync(embed(embedder, texts))
        return dict(zip(texts, vectors, strict=True))

    def _move(self, before: LibraryMemory, embedder: Embedder) -> LibraryMemory:
        """Copies the stored entries into a new memory, whose embedder was fitted again.

        So a memory continues the same way whether it was saved in between or not: for the next
        extraction, mem0 keeps its latest messages, which are not saved.
        """
        ids, payloads, vectors = [], [], []
        for row in before.rows():
            ids.append(str(row.id))
            payloads.append(row.payload)
            vectors.append(row.vector)

        memory = self._open(embedder, len(vectors[0]) if vectors else embedder.width)
        if embedder is not before.embedder:
            vectors = memory.vectors_of([payload["data"] for payload in payloads])

        memory.unparsed = before.unparsed
        memory.insert(ids, payloads, vectors)
        return memory

    def _open(self, embedder: Embedder, width: int) -> LibraryMemory:
        """Opens an empty memory over an embedder that was fitted on the chunks."""
        self.close()
        infer = bool(self.settings.infer)
        self._library = LibraryMemory(embedder, self.parts, width, infer=infer)
        return self._library

    def _upload(self) -> None:
        prepare_import()
        if self._cloud is None:
            self._cloud = CloudMemory(self.settings.host or HOST, self._key, self.parts.case_id)

        try:
            self._cloud.add(self._chunks[self._added :], infer=bool(self.settings.infer))
        except BaseException:
            # The engine closes only a memory that was built completely.
            self.close()
            raise

        self._added = len(self._chunks)

    def forget(self, request: ForgetRequest) -> int:
        """Deletes the memories that the request covers, with mem0's own `delete`."""
        memory = self._memory
        if memory is None:
            return 0

        return forget_in(memory.texts(request.user), request, memory.delete)

    def correct(self, request: CorrectRequest) -> int:
        """Replaces the old value in the memories that contain it, with mem0's own `update`."""
        memory = self._memory
        if memory is None:
            return 0

        return len(correct_in(memory.texts(request.user), request, memory.update))

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
        if self._library is None or not self.settings.infer:
            return None

        items: list[DumpItem] = []
        for row in self._library.rows():
            text, turn_ids = row.payload["data"], list(row.payload["turn_ids"])
            time = row.payload["date"]
            items.append({"kind": "fact", "text": text, "turn_ids": turn_ids, "time": time})

        return items

    async def recall(self, query: Query, depth: int) -> list[Retrieved]:
        text = query.text.strip()
        if self._memory is None or not text or not self._chunks:
            return []

        hits = await self._memory.search(text, depth, self.settings.threshold, query.user)
        return list(map(self._entry, hits))

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
        if self._library and self._library.unparsed:
            notes["mem0_unparsed_replies"] = self._library.unparsed

        return notes

    def save(self, folder: Path) -> None:
        if self.settings.own_server:
            raise NotImplementedError("a memory on mem0's host is deleted after its run")
        if has_entities():
            raise NotImplementedError("mem0's entity store can't be saved")

        assert self._library is not None
        memories, vectors = [], []
        for row in self._library.rows():
            memories.append({"id": str(row.id), "payload": row.payload})
            vectors.append(row.vector)

        state = {"unparsed": self._library.unparsed, "memories": memories}
        write_state(folder / ROWS_FILE, state)
        matrix = np.array(vectors, dtype=np.float32)
        np.save(folder / VECTORS_FILE, matrix, allow_pickle=False)
        write_chunks(folder, self._chunks)

    def load(self, folder: Path) -> None:
        self.reset()
        self._chunks = read_chunks(folder)
        state = read_state(folder / ROWS_FILE)
        memories = state["memories"]
        vectors = load_vectors(folder / VECTORS_FILE, len(memories), "memories")
        embedder = self.parts.embedder.fitted([chunk.text for chunk in self._chunks])
        memory = self._open(embedder, vectors.shape[1] if memories else embedder.width)
        memory.unparsed = state["unparsed"]

        ids, payloads = [], []
        for row in memories:
            ids.append(row["id"])
            payloads.append(row["payload"])

        self._added = self._loaded = len(self._chunks)
        memory.insert(ids, payloads, vectors.tolist())

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()

        self._library = self._cloud = None
