"""Systems that keep chunks and search an index over them."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from memeval.llm.metering import current_ledger
from memeval.records import (
    Answer,
    CorrectRequest,
    ForgetRequest,
    IngestHealth,
    MemoryChunk,
    Query,
    Retrieved,
)
from memeval.systems.base import QuickSystem, ReaderReply, RecallSystem
from memeval.systems.chunk_file import read_saved, split_window, write_chunks
from memeval.systems.forgetting import corrected, count_changed, without

Entry = MemoryChunk | Retrieved
"""An entry of an index; a `Retrieved` has no score here."""
Ranked = Sequence[tuple[int, float | None]]
"""Positions of entries with their scores, best first; no score below the requested depth."""


class SearchIndex(Protocol):
    """An index that a system searches. By default it writes nothing, and has nothing to release."""

    def save(self, folder: Path) -> None:
        """Writes the parts that take long to build."""
        return

    def close(self) -> None:
        """Releases its resources."""
        return


IndexT = TypeVar("IndexT", bound=SearchIndex)


class IndexedSystem(QuickSystem, RecallSystem, Generic[IndexT]):
    """A recall system over an index: subclasses define `texts`, `build` and `rank`."""

    keeps_window: ClassVar[bool] = False
    """True for systems that can show the agent's window, see `window`."""

    chunks: list[MemoryChunk]
    """The ingested chunks, in order of time."""
    index: IndexT | None = None
    """None until `consolidate` or `load`, and after `close`."""
    retained: list[MemoryChunk] | None
    """The agent's window since a compression; None before the first one."""
    _lost: int | None = None
    """Ingested chunks without a usable reply of a model; None in systems that count no losses."""

    def texts(self) -> list[str]:
        """The texts that are indexed, by position."""
        return [chunk.indexed() for chunk in self.chunks]

    @abstractmethod
    async def build(self, saved: Path | None) -> IndexT | None:
        """The index over `texts()`, read from `saved` if given; None if nothing is searched.

        `self.index` is still the previous index: its vectors of unchanged texts can be reused.
        """

    @abstractmethod
    async def rank(self, index: IndexT, query: Query, depth: int) -> Ranked:
        """Positions of entries for the query, at least `depth` of them if there are as many."""

    def entries(self) -> Sequence[Entry]:
        """The entries that can be retrieved; `rank` returns their positions."""
        return self.chunks

    def reset(self) -> None:
        self.close()
        self.chunks = []
        self._entries: Sequence[Entry] = ()
        self.retained = None
        self._loaded = 0

    def ingest(self, chunk: MemoryChunk) -> Awaitable[None] | None:
        self.chunks.append(chunk)
        if self.retained is not None:
            self.retained.append(chunk)

        return None

    def compress(self, retained: Sequence[MemoryChunk]) -> None:
        if self.keeps_window:
            window = self.chunks if self.retained is None else self.retained
            _, self.retained = split_window(window, retained)

    def window(self) -> Sequence[MemoryChunk]:
        """The agent's window under `show_window`: chunks kept by the last cut, and later ones."""
        if not getattr(self.settings, "show_window", False):
            return ()

        return self.chunks if self.retained is None else self.retained

    async def consolidate(self) -> None:
        await self._open(None)

    async def forget(self, request: ForgetRequest) -> int | None:
        if not self.keeps_only_chunks:
            return None

        before = len(self._all_chunks())
        self.change_chunks(lambda chunks: without(chunks, request))
        await self._open(None)
        return before - len(self._all_chunks())

    async def correct(self, request: CorrectRequest) -> int | None:
        if not self.keeps_only_chunks:
            return None

        before = self._all_chunks()
        self.change_chunks(lambda chunks: corrected(chunks, request))
        await self._open(None)
        return count_changed(before, self._all_chunks())

    def _all_chunks(self) -> list[MemoryChunk]:
        """The chunks, and those of the window that are not among them."""
        known = set(self.chunks)
        return [*self.chunks, *(chunk for chunk in self.retained or () if chunk not in known)]

    def change_chunks(self, change: Callable[[list[MemoryChunk]], list[MemoryChunk]]) -> None:
        """Changes the chunks, and those of the agent's window."""
        self.chunks = change(self.chunks)
        if self.retained is not None:
            self.retained = change(self.retained)

    @property
    def keeps_only_chunks(self) -> bool:
        """Whether all its knowledge is in its chunks, so that the simple rule can remove it."""
        return not self.uses_llm_at_ingest(self.settings)

    def health(self) -> IngestHealth | None:
        """The losses among the chunks that were ingested and not loaded, if they are counted."""
        if self._lost is None or self.keeps_only_chunks:
            return None

        asked = len(self.chunks) - self._loaded
        return IngestHealth(asked=asked, stored=asked - self._lost, lost=self._lost)

    async def _open(self, saved: Path | None) -> None:
        before = self.index
        self.index = await self.build(saved)
        if before is not None:
            before.close()

        self.update_entries()

    def update_entries(self) -> None:
        """Notes that `entries()` has changed."""
        self._entries = self.entries()

    async def ranked(self, query: Query, top_k: int) -> Ranked:
        """The ranking whose first `top_k` entries are shown, as deep as the metrics need."""
        if self.index is None:
            return ()

        return await self.rank(self.index, query, max(top_k, self.ranking_depth))

    def answer_of(
        self,
        reply: ReaderReply,
        *,
        chosen: Ranked,
        ranked: Ranked,
        notes: Mapping[str, Any] | None = None,
    ) -> Answer:
        """An answer with the entries that the reader was shown, and all ranked entries' turns."""
        return reply.as_answer(
            retrieved=tuple(starmap(self.entry, chosen)),
            ranking=self._turn_ids(ranked),
            notes=notes,
        )

    async def recall(self, query: Query, depth: int) -> list[Retrieved]:
        if self.index is None:
            return []

        with current_ledger().own_work.computing():
            ranked = await self.rank(self.index, query, depth)
            return list(starmap(self.entry, ranked[:depth]))

    async def answer(self, query: Query) -> Answer:
        cls = type(self)
        # A user's own class may filter what `recall` returns, or what the reader gets.
        if (cls.recall, cls.answer_from) != (IndexedSystem.recall, RecallSystem.answer_from):
            return await super().answer(query)

        own_work = current_ledger().own_work
        with own_work.computing():
            ranked = await self.ranked(query, self.parts.top_k)
            chosen = tuple(starmap(self.entry, ranked[: self.parts.top_k]))

        # The whole ranking is only for metrics, so its time does not count: reading hundreds of
        # entries from cold memory took longer than the search.
        with own_work.excluded():
            ranking = self._turn_ids(ranked)

        return replace(await self.answer_from(query, chosen), ranking=ranking)

    def entry(self, position: int, score: float | None) -> Retrieved:
        """The entry at a position, with its score."""
        entry = self._entries[position]
        return Retrieved(text=entry.text, turn_ids=entry.turn_ids, score=score, time=entry.time)

    def _turn_ids(self, ranked: Ranked) -> tuple[tuple[str, ...], ...]:
        # In C: a ranking has hundreds of entries.
        entries = map(self._entries.__getitem__, map(itemgetter(0), ranked))
        return tuple(map(attrgetter("turn_ids"), entries))

    def save(self, folder: Path) -> None:
        write_chunks(folder, self.chunks, self.retained)
        if self.index is not None:
            self.index.save(folder)

    async def load(self, folder: Path) -> None:
        saved = read_saved(folder)
        self.chunks, self.retained = saved.chunks, saved.window
        self._loaded = len(self.chunks)
        await self._open(folder)

    def close(self) -> None:
        if self.index is not None:
            self.index.close()

        self.index = None
