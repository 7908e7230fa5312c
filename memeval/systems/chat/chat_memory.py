"""Chat memory as agent frameworks configure it: the last messages, semantic recall, working memory,
or several of them.

In the frameworks' terms, a case is a resource, a session is a thread, and a chunk is a message; the
settings use these names. Each question opens its own thread, so "last" and "all" refer to the whole
resource. Chunks are kept: a compression of the agent's window loses none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memeval.config.schema import TOOLS
from memeval.errors import UserError
from memeval.records import Answer, IngestHealth, MemoryChunk, Query
from memeval.retrieval.dense import DenseIndex
from memeval.systems.base import (
    ANSWER,
    NOT_NEGATIVE,
    POSITIVE,
    DumpItem,
    SystemContext,
    latest_first,
)
from memeval.systems.chat.working_form import TEMPLATES, WorkingForm, WorkingMemorySettings
from memeval.systems.indexed import IndexedSystem, Ranked

NEW_THREAD = "recall.scope=thread recalls nothing, because every question opens a new thread"


@dataclass(frozen=True)
class RecallSettings:
    top_k: int | None = field(default=None, metadata=ANSWER | POSITIVE)
    """Chunks recalled, not counting neighbours; None uses the cell's top_k, which is always the
    upper limit.
    """
    message_range: int = field(default=2, metadata=ANSWER | NOT_NEGATIVE)
    """Neighbours shown on either side of each hit, from the same session."""
    scope: Literal["resource", "thread"] = field(default="resource", metadata=ANSWER)
    """Scope of the search: all sessions, or the current one, which is empty for each question."""


class ChatMemory(IndexedSystem[DenseIndex]):
    """Shows the working memory, then the recalled and the last chunks.

    Its settings have `last_messages`, and `recall` and `working_memory` if it has these parts.
    Each chunk is shown once, in order of time.
    """

    def __init__(self, settings: Any, parts: SystemContext) -> None:
        self._last: int = settings.last_messages
        self._recall: RecallSettings | None = getattr(settings, "recall", None)
        form: WorkingMemorySettings | None = getattr(settings, "working_memory", None)
        self._form = WorkingForm(form, parts) if form else None
        # Last, because it calls `reset`, which also empties the form.
        super().__init__(settings, parts)

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        return TEMPLATES if hasattr(settings, "working_memory") else ()

    @classmethod
    def check_use(cls, settings: Any, *, reader: str, writer: str) -> None:
        if reader == TOOLS and not hasattr(settings, "recall"):
            raise UserError(
                f"reader=tools: {cls.__name__} searches nothing, so its tool would find nothing",
                "use:  reader=direct",
            )

    def reset(self) -> None:
        super().reset()
        if self._form:
            self._form.reset()

    async def ingest(self, chunk: MemoryChunk) -> None:
        self.chunks.append(chunk)
        if self._form:
            await self._form.add(chunk)

    async def consolidate(self) -> None:
        if self._form:
            await self._form.finish()

        await super().consolidate()

    async def build(self, saved: Path | None) -> DenseIndex | None:
        if self._recall is None:
            return None

        return await DenseIndex.open(self.parts.embedder, self.texts(), saved, self.index)

    async def rank(self, index: DenseIndex, query: Query, depth: int) -> Ranked:
        if self._recall is None or self._recall.scope == "thread":
            return ()

        return await index.search(query.text, depth)

    def health(self) -> IngestHealth | None:
        """The form's losses; None without a form, since nothing else calls a model at ingest."""
        return self._form.health if self._form else None

    def dump(self) -> list[DumpItem] | None:
        return self._form.dump() if self._form else None

    async def answer(self, query: Query) -> Answer:
        hits = await self.ranked(query, self._top_k())
        chosen = hits[: self._top_k()]

        shown = []
        if self._form and (form := self._form.text):
            shown.append(form)

        forms = len(shown)
        # A set of positions: a hit, a neighbour and a last message may be the same chunk.
        positions = sorted(self._around(chosen) | self._newest())
        shown += [self.chunks[position].text for position in positions]
        # The form, the hits by rank, then their neighbours and the last messages, latest first.
        places = dict(zip(positions, range(forms, len(shown)), strict=True))
        ranks = [places[position] for position, _ in chosen]
        order = dict.fromkeys([*range(forms), *ranks, *latest_first(len(shown))])
        reply = await self.parts.reader.answer(query, shown, order=list(order))

        # Without recall nothing was searched, so there is no retrieval to score. An empty ranking
        # would count as a complete miss.
        if not self._recall:
            return reply.as_answer(notes=self._notes())

        return self.answer_of(reply, chosen=chosen, ranked=hits, notes=self._notes())

    def window(self) -> Sequence[MemoryChunk]:
        """The last chunks and the form, which every question is shown."""
        shown = [self.chunks[position] for position in sorted(self._newest())]
        if self._form and (form := self._form.text):
            chunk = MemoryChunk(
                chunk_id="form", content=form, time=None, session_id="", turn_ids=(), speakers=()
            )
            # At the end, so that it is the last to be left out, as under `reader=direct`.
            shown.append(chunk)

        return shown

    def _top_k(self) -> int:
        # The cell's `top_k` is the same for all systems of a comparison, so it stays the limit.
        if self._recall and self._recall.top_k:
            return min(self._recall.top_k, self.parts.top_k)

        return self.parts.top_k

    def _newest(self) -> set[int]:
        """Positions of the last chunks."""
        return set(range(max(0, len(self.chunks) - self._last), len(self.chunks)))

    def _around(self, hits: Ranked) -> set[int]:
        """Positions of the hits and of their neighbours in the same session."""
        reach = self._recall.message_range if self._recall else 0
        positions = set()
        for hit, _ in hits:
            session = self.chunks[hit].session_id
            for position in range(max(0, hit - reach), min(len(self.chunks), hit + reach + 1)):
                if self.chunks[position].session_id == session:
                    positions.add(position)

        return positions

    def _notes(self) -> dict[str, str]:
        notes = dict(self._form.notes) if self._form else {}
        if self._recall and self._recall.scope == "thread":
            notes["recall"] = NEW_THREAD
        elif self._recall and self._recall.top_k and self._recall.top_k > self.parts.top_k:
            notes["recall"] = f"top_k={self.parts.top_k} bounds recall.top_k={self._recall.top_k}"

        return notes

    def save(self, folder: Path) -> None:
        super().save(folder)
        if self._form:
            self._form.save(folder)

    async def load(self, folder: Path) -> None:
        if self._form:
            self._form.load(folder)

        await super().load(folder)
