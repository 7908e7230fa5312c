"""A core window and an archive: what a compression drops from the window can still be searched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memeval.records import Answer, MemoryChunk, Query, Retrieved
from memeval.retrieval.fusion import FusedIndex
from memeval.systems.base import MemorySystem, SystemContext, SystemSettings
from memeval.systems.chat.window import Window
from memeval.systems.chunk_file import read_chunks, read_window, write_chunks

RANKING_DEPTH = 20
"""Units that are ranked at least, so that recall@20 can be told at any top_k."""


class MemGptLite(MemorySystem):
    """Shows the top-k units of the archive and the whole core, in order of time.

    The core is the window; the archive is what compressions dropped from it, found by reciprocal rank fusion (k = 60) of cosine and BM25.
    What it retrieves, and its ranking, are the archive's alone: evidence that still stands in the core is before the reader, but was not
    retrieved. Before any compression the archive is empty, and no retrieval is shown.
    """

    in_thread = False
    _index: FusedIndex | None = None

    def __init__(self, settings: SystemSettings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self.reset()

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        self.close()
        self._core = Window()
        self._archive: list[MemoryChunk] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        self._core.add(chunk)

    def compress(self, retained: Sequence[MemoryChunk]) -> None:
        self._archive += self._core.cut(retained)

    def _texts(self) -> tuple[list[str], list[str]]:
        """What is embedded, and what is indexed by its words."""
        contents = [chunk.indexed() for chunk in self._archive]
        return contents, contents

    async def consolidate(self) -> None:
        self.close()
        self._index = await FusedIndex.build(self.parts.embedder, *self._texts())

    async def answer(self, query: Query) -> Answer:
        depth = max(self.parts.top_k, RANKING_DEPTH)
        found = await self._index.search(query.text, depth) if self._index and self._archive else []
        chosen = found[: self.parts.top_k]
        recalled = [
            self._archive[position].text for position, _ in sorted(chosen)
        ]  # the archive is older than the core
        reply = await self.parts.reader.answer(
            query, [*recalled, *(chunk.text for chunk in self._core.units)]
        )
        return Answer(
            text=reply.text,
            raw=reply.raw,
            retrieved=tuple(self._unit(position, score) for position, score in chosen)
            if self._archive
            else None,
            ranking=tuple(self._archive[position].turn_ids for position, _ in found)
            if self._archive
            else None,
            context_tokens=reply.context_tokens,
        )

    def _unit(self, position: int, score: float) -> Retrieved:
        chunk = self._archive[position]
        return Retrieved(chunk.text, chunk.turn_ids, score)

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._archive, self._core.units)
        if self._index:
            self._index.save(folder)

    async def load(self, folder: Path) -> None:
        self.close()
        self._archive = read_chunks(folder)
        self._core = Window(read_window(folder) or ())
        self._index = await FusedIndex.load(folder, self.parts.embedder, *self._texts())

    def close(self) -> None:
        if self._index:
            self._index.close()
        self._index = None
