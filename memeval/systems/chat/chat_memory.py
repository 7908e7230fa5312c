"""Chat memory of the kind that agent frameworks configure: last messages, semantic recall, working memory, or several of them.

A case is a resource, a session is a thread, an ingested chunk is a message. Each question opens a thread of its own, so that "last" and
"all" messages mean those of the whole resource. Messages are kept for good: a compression of the agent's window loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memeval.errors import UserError
from memeval.records import Answer, IngestHealth, MemoryChunk, Query, Retrieved
from memeval.retrieval.dense import DenseIndex
from memeval.systems.base import ANSWER, MemorySystem, SystemContext, SystemSettings
from memeval.systems.chat.window import check_positive
from memeval.systems.chat.working_form import WorkingForm, WorkingMemorySettings
from memeval.systems.chunk_file import read_chunks, write_chunks

RANKING_DEPTH = 20
"""Messages that are ranked at least, so that recall@20 can be told at any top_k."""
NEW_THREAD = "recall.scope=thread recalls nothing: every question opens a new thread"
Hits = Sequence[tuple[int, float]]
"""Positions of messages with their cosines, best first."""


@dataclass(frozen=True)
class RecallSettings:
    """Settings `recall.*`."""

    top_k: int | None = field(default=None, metadata=ANSWER)
    """Messages that are recalled; None takes the cell's top_k, which bounds it in any case. Neighbours come on top."""
    message_range: int = field(default=2, metadata=ANSWER)
    """Neighbours that each hit brings on either side, from its own session."""
    scope: Literal["resource", "thread"] = field(default="resource", metadata=ANSWER)
    """What is searched: all sessions of the case, or the current one alone, which is empty when a question opens it."""

    def __post_init__(self) -> None:
        if self.top_k is not None:
            check_positive(**{"recall.top_k": self.top_k})
        if self.message_range < 0:
            raise UserError(
                f"system.recall.message_range must be at least 0, but is {self.message_range}"
            )


class ChatMemory(MemorySystem):
    """Shows the working memory, then what was recalled and the last messages, once each and in order of time."""

    in_thread = False
    _index: DenseIndex | None = None

    def __init__(
        self,
        settings: SystemSettings,
        parts: SystemContext,
        *,
        last_messages: int = 0,
        recall: RecallSettings | None = None,
        working_memory: WorkingMemorySettings | None = None,
    ) -> None:
        super().__init__(settings, parts)
        self._last = last_messages
        self._recall = recall
        self._form = WorkingForm(working_memory, parts) if working_memory else None
        self.reset()

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return bool(cls.ingest_templates(settings))

    def reset(self) -> None:
        self.close()
        self._messages: list[MemoryChunk] = []
        if self._form:
            self._form.reset()

    async def ingest(self, chunk: MemoryChunk) -> None:
        self._messages.append(chunk)
        if self._form:
            await self._form.add(chunk)

    async def consolidate(self) -> None:
        self.close()
        if self._form:
            await self._form.finish()
        if self._recall:
            self._index = await DenseIndex.build(self.parts.embedder, self._texts())

    def health(self) -> IngestHealth | None:
        """That of the form, where there is one: nothing else thinks at ingest."""
        return self._form.health if self._form else None

    def _texts(self) -> list[str]:
        return [message.indexed() for message in self._messages]

    async def answer(self, query: Query) -> Answer:
        hits = await self._hits(query)
        chosen = hits[: self._top_k()]
        places = {
            *self._around(chosen),
            *range(max(0, len(self._messages) - self._last), len(self._messages)),
        }
        form = [self._form.text] if self._form and self._form.text else []
        reply = await self.parts.reader.answer(
            query, [*form, *(self._messages[place].text for place in sorted(places))]
        )
        return Answer(
            text=reply.text,
            raw=reply.raw,
            retrieved=tuple(self._unit(place, score) for place, score in chosen)
            if self._recall
            else None,
            ranking=tuple(self._messages[place].turn_ids for place, _ in hits)
            if self._recall
            else None,
            context_tokens=reply.context_tokens,
            notes=self._notes(),
        )

    async def _hits(self, query: Query) -> Hits:
        if self._index is None or self._recall is None or self._recall.scope == "thread":
            return ()
        return await self._index.search(query.text, max(self._top_k(), RANKING_DEPTH))

    def _top_k(self) -> int:
        own = self._recall.top_k if self._recall else None
        return min(own or self.parts.top_k, self.parts.top_k)

    def _around(self, hits: Hits) -> set[int]:
        """Places of the hits and of their neighbours in the same session."""
        reach = self._recall.message_range if self._recall else 0
        return {
            place
            for hit, _ in hits
            for place in range(max(0, hit - reach), min(len(self._messages), hit + reach + 1))
            if self._messages[place].session_id == self._messages[hit].session_id
        }

    def _unit(self, place: int, score: float) -> Retrieved:
        return Retrieved(self._messages[place].text, self._messages[place].turn_ids, score)

    def _notes(self) -> dict[str, str]:
        notes = dict(self._form.notes) if self._form else {}
        if self._recall and self._recall.scope == "thread":
            notes["recall"] = NEW_THREAD
        elif self._recall and self._recall.top_k and self._recall.top_k > self.parts.top_k:
            notes["recall"] = f"top_k={self.parts.top_k} bounds recall.top_k={self._recall.top_k}"
        return notes

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._messages)
        if self._index:
            self._index.save(folder)
        if self._form:
            self._form.save(folder)

    async def load(self, folder: Path) -> None:
        self.close()
        self._messages = read_chunks(folder)
        if self._form:
            self._form.load(folder)
        if self._recall:
            self._index = await DenseIndex.load(folder, self.parts.embedder, self._texts())

    def close(self) -> None:
        if self._index:
            self._index.close()
        self._index = None
