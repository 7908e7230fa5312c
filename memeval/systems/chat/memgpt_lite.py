"""A core window, and a searchable archive of the chunks that compressions drop from it."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from memeval.records import Answer, MemoryChunk, Query
from memeval.retrieval.fusion import FusedIndex
from memeval.systems.base import latest_first
from memeval.systems.chunk_file import split_window
from memeval.systems.indexed import IndexedSystem


class MemGptLite(IndexedSystem[FusedIndex]):
    """Shows the top-k chunks of the archive and the whole core, in order of time.

    The core, `retained`, is the window. The archive, `chunks`, has the chunks that compressions
    dropped from it, found by reciprocal rank fusion (k = 60) of cosine and BM25.

    Its retrieval and its ranking come only from the archive: evidence that is still in the
    core is shown to the reader, but was not retrieved. Before any compression the archive is
    empty, and the answer shows no retrieval.
    """

    ranks_part: ClassVar[bool] = True

    def reset(self) -> None:
        super().reset()
        self.retained = []

    def ingest(self, chunk: MemoryChunk) -> None:
        if self.retained is not None:
            self.retained.append(chunk)

    def compress(self, retained: Sequence[MemoryChunk]) -> None:
        leaving, self.retained = split_window(self.window(), retained)
        self.chunks += leaving

    def window(self) -> Sequence[MemoryChunk]:
        return self.retained or ()

    async def build(self, saved: Path | None) -> FusedIndex:
        texts = self.texts()
        return await FusedIndex.open(self.parts.embedder, texts, texts, saved, self.index)

    async def rank(self, index: FusedIndex, query: Query, depth: int) -> list[tuple[int, float]]:
        return await index.search(query.text, depth) if self.chunks else []

    async def answer(self, query: Query) -> Answer:
        ranked = await self.ranked(query, self.parts.top_k)
        chosen = ranked[: self.parts.top_k]

        positions = sorted(position for position, _ in chosen)
        core = self.window()
        # The archive is older than the core.
        shown = [self.chunks[position].text for position in positions]
        shown += [chunk.text for chunk in core]
        places = {position: index for index, position in enumerate(positions)}
        ranks = [places[position] for position, _ in chosen]
        order = [*ranks, *latest_first(len(shown))[: len(core)]]
        reply = await self.parts.reader.answer(query, shown, order=order)

        if not self.chunks:
            return reply.as_answer()

        return self.answer_of(reply, chosen=chosen, ranked=ranked)
