"""The control without retrieval: the whole conversation, as far as it fits."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from memeval.llm.tokens import count_tokens
from memeval.records import Answer, ForgetRequest, MemoryChunk, Query, Retrieved
from memeval.systems.base import ANSWER, POSITIVE, SystemSettings, latest_first
from memeval.systems.chunk_file import ChunkSystem
from memeval.systems.forgetting import without


@dataclass(frozen=True)
class LongContextSettings(SystemSettings):
    """Settings of `long_context`, `full_history` and `native`."""

    max_context_tokens: int = field(default=120_000, metadata=ANSWER | POSITIVE)
    """Maximum tokens of the chunks shown, counted offline; the newest ones are shown."""


class LongContext(ChunkSystem):
    """Shows all chunks in order, without the oldest ones that exceed `max_context_tokens`."""

    settings_type = LongContextSettings
    settings: LongContextSettings

    def reset(self) -> None:
        super().reset()
        self._tokens: list[int] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        super().ingest(chunk)
        self._tokens.append(count_tokens(chunk.text))

    def _first_shown(self) -> int:
        room = self.settings.max_context_tokens
        # Counted from the newest chunk: BEAM's runner, too, drops the oldest messages.
        for position in reversed(range(len(self._chunks))):
            room -= self._tokens[position]
            if room < 0:
                return position + 1

        return 0

    def forget(self, request: ForgetRequest) -> int:
        before = len(self._chunks)
        self.replace_chunks(without(self._chunks, request))
        return before - len(self._chunks)

    def probe(self, query: Query, depth: int) -> Sequence[Retrieved]:
        """All chunks shown for a question: they are not ranked, so they are not cut at `depth`."""
        shown = self._chunks[self._first_shown() :]
        return [Retrieved(text=chunk.text, turn_ids=chunk.turn_ids) for chunk in shown]

    async def answer(self, query: Query) -> Answer:
        first = self._first_shown()
        shown = [chunk.text for chunk in self._chunks[first:]]
        reply = await self.parts.reader.answer(query, shown, order=latest_first(len(shown)))
        if not first:
            return reply.as_answer()

        notes = {"cut_chunks": first, "cut_tokens": sum(self._tokens[:first])}
        return reply.as_answer(notes=notes)
