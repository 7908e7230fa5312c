"""Extracts artifacts with a model, in batches, and looks up each quote in the conversation."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct, field

from memeval.llm.breaker import note_reading
from memeval.llm.contract import Completion
from memeval.llm.memory_prompts import ExtractPrompt
from memeval.llm.metering import current_ledger
from memeval.llm.model import LanguageModel
from memeval.llm.prompts import load_builtin
from memeval.llm.tokens import batches as by_tokens
from memeval.records import MemoryChunk, Role
from memeval.systems.asking import ask, halves
from memeval.systems.cogcanvas.artifacts import Artifact, Batch
from memeval.systems.cogcanvas.dates import events_of_times, point_dates, resolve_dates
from memeval.systems.cogcanvas.quotes import LocatedQuote, find_nearest, find_verbatim
from memeval.systems.cogcanvas.reply import (
    ItemsReply,
    kind_of,
    named_chunk,
    people_of,
    read_reply,
    text_of,
)
from memeval.systems.cogcanvas.settings import CogCanvasSettings

TEMPLATE, GLEAN_TEMPLATE = "extract", "glean"
"""The templates of the first and of the second reading."""
# As published.
EARLIER_CHARACTERS = 100
"""Characters of an earlier artifact that the model is shown."""


class BatchReading(Struct):
    number: int
    """The batch's number, from 0."""
    first: Sequence[Artifact] = ()
    """For a second reading: the artifacts of the first one."""
    earlier: Sequence[str] = ()
    """Artifacts of earlier batches, as they are shown to the model."""
    artifacts: list[Artifact] = field(default_factory=list)
    """The artifacts of this reading so far."""


class Extractor(Struct):
    """Requests the artifacts of a conversation from a model."""

    model: LanguageModel
    seed: int
    settings: CogCanvasSettings
    counts: Counter[str] = field(default_factory=Counter)
    """Events by name.

    `calls` to the model, except those that were repeated or replaced by halves; of these, replies
    that could not be read (`unreadable`) or broke off (`cut`); artifacts whose quote was
    `repaired`, that were `dropped` because no turn contains their quote, whose type is unknown
    (`unknown_type`), or that repeat an earlier one (`repeated`).
    """
    lost: set[int] = field(default_factory=set)
    """Indexes of the chunks for which every reply was useless."""

    async def extract(self, cut: Sequence[Batch]) -> list[Artifact]:
        """The artifacts of all batches, in order. Raises `ModelError`."""
        artifacts: list[Artifact] = []
        # A batch that is shown the artifacts of earlier ones has to wait for them.
        if self.settings.earlier:
            for number, batch in enumerate(cut):
                latest = artifacts[-self.settings.earlier :]
                earlier = [
                    f"({artifact.kind}) {artifact.content[:EARLIER_CHARACTERS]}"
                    for artifact in latest
                ]
                artifacts += await self._batch(number, batch, earlier)
        else:
            artifacts = await self._at_once(cut)

        if self.settings.temporal_fallback:
            artifacts += events_of_times(cut, artifacts, self._dates)

        # Second readings and events of times come last in the list, but not in the conversation.
        return sorted(artifacts, key=lambda artifact: (artifact.chunk_index, artifact.start))

    async def _at_once(self, cut: Sequence[Batch]) -> list[Artifact]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = []
                for number, batch in enumerate(cut):
                    tasks.append(group.create_task(self._batch(number, batch, ())))
        except ExceptionGroup as errors:
            # The first failure cancels the other calls and becomes the failure of the ingest.
            raise errors.exceptions[0] from errors

        return list(chain.from_iterable(task.result() for task in tasks))

    async def _batch(self, number: int, batch: Batch, earlier: Sequence[str]) -> list[Artifact]:
        first = BatchReading(number=number, earlier=earlier)
        await self._read(batch, first)

        # After a first reading without artifacts, both readings would have the same prompt.
        if not self.settings.gleaning or not first.artifacts:
            return first.artifacts

        second = BatchReading(number=number, first=first.artifacts)
        await self._read(batch, second)
        return first.artifacts + second.artifacts

    async def _read(self, batch: Batch, reading: BatchReading, part: str | None = None) -> None:
        """Sends one request of a reading; `part` replaces the text of a batch's only chunk."""
        here = dict(batch).keys()
        texts = tuple(chunk.text for _, chunk in batch)
        if part is not None:
            texts = (part,)

        outcome = await ask(
            self.model,
            self._prompt(batch, texts, reading),
            seed=self.seed,
            read=lambda completion: self._keep_reply(completion, batch, reading),
        )
        reply = outcome.value
        if reply is None and outcome.cut:
            if await self._read_halves(batch, texts, reading):
                return

            note_reading(readable=False, cut=True)

        self.counts["calls"] += 1
        if reply is None:
            self.counts["unreadable"] += 1
            self.lost |= here
            return

        if reply.closed:
            # A second reading makes up for a first one that was cut. The reading of a part doesn't:
            # the other half may still be lost.
            if part is None:
                self.lost -= here
        else:
            self.counts["cut"] += 1
            last = max(map(named_chunk, reply.items))
            await self._read_rest(batch, texts, reading, last, is_cut=outcome.cut)

    async def _read_rest(
        self, batch: Batch, texts: Sequence[str], reading: BatchReading, last: int, *, is_cut: bool
    ) -> None:
        """Asks again after a list that breaks off: from the `last` chunk that it reached, or else
        for each half.
        """
        # A request that starts at the first chunk would be the whole batch again, and its reply
        # would be cut again: that case is halved below.
        if 2 <= last <= len(batch):
            if is_cut:
                current_ledger().drop_cut(Role.INGEST)

            await self._read(batch[last - 1 :], reading)
        elif not (is_cut and await self._read_halves(batch, texts, reading)):
            self.lost |= {number for number, _ in batch[max(last, 1) - 1 :]}

    async def _read_halves(self, batch: Batch, texts: Sequence[str], reading: BatchReading) -> bool:
        """Sends a request for each half of a batch; False if it can't be halved."""
        middle = len(batch) // 2
        passes: list[tuple[Batch, str | None]]
        if middle:
            passes = [(batch[:middle], None), (batch[middle:], None)]
        else:
            passes = [(batch, half) for half in halves(texts[0])]

        if not passes:
            return False

        # The halves replace the request that was cut, so it no longer counts as a loss.
        current_ledger().drop_cut(Role.INGEST)
        for half, part in passes:
            await self._read(half, reading, part)

        return True

    def _prompt(self, batch: Batch, texts: tuple[str, ...], reading: BatchReading) -> ExtractPrompt:
        here = dict(batch).keys()
        known, quotes = list(reading.earlier), []
        for artifact in (*reading.first, *reading.artifacts):
            if artifact.chunk_index in here:
                known.append(artifact.content)
                quotes.append(artifact.quote)

        template = load_builtin(GLEAN_TEMPLATE if reading.first else TEMPLATE)
        return ExtractPrompt(
            chunks=texts,
            known=tuple(known),
            system_text=template.system,
            user_template=template.user,
            quotes=tuple(quotes) if reading.first else (),
        )

    def _keep_reply(
        self, completion: Completion, batch: Batch, reading: BatchReading
    ) -> ItemsReply | None:
        """Keeps a reply's artifacts; None without a list, or if a first reply has no real quote."""
        reply = read_reply(completion.text)
        if reply is None:
            return None

        # Later requests of a batch may rightly find nothing new. A first reply with only invented
        # quotes is useless, so the model is asked again.
        is_beginning = not reading.first and not reading.artifacts
        before = self.counts["dropped"]
        for item in reply.items:
            self._keep_item(item, batch, reading)

        if is_beginning and self.counts["dropped"] - before == len(reply.items) > 0:
            return None

        return reply

    def _keep_item(self, item: Any, batch: Batch, reading: BatchReading) -> None:
        """Adds an item of a reply to the artifacts of the reading, if its quote can be found."""
        # The published system never checks a quote. Here an invented quote drops its artifact.
        located = self._locate(item, batch)
        if located is None:
            self.counts["dropped"] += 1
            return

        kind = kind_of(item)
        # As published: an unknown type is skipped, a missing one counts as a key fact (`kind_of`).
        if kind is None:
            self.counts["unknown_type"] += 1
            return

        number, chunk, quote = located
        artifact = Artifact(
            kind=kind,
            content=text_of(item.get("content")) or quote.quote,
            quote=quote.quote,
            speaker=quote.line.speaker,
            turn_ids=quote.line.turn_ids,
            time=chunk.time,
            dates=self._dates(quote.quote, chunk, text_of(item.get("date"))),
            people=people_of(item, quote.line.speaker),
            chunk_index=number,
            start=quote.start,
            batch=reading.number,
        )
        if self._is_repeated(artifact, reading):
            self.counts["repeated"] += 1
        else:
            reading.artifacts.append(artifact)

    def _is_repeated(self, artifact: Artifact, reading: BatchReading) -> bool:
        """Whether this reading or the first one has the artifact already."""
        # A request after a reply that broke off may repeat the end of that reply. The quote alone
        # is not enough: one sentence may state several facts, which are all kept, as published.
        for other in reading.artifacts:
            if (
                other.chunk_index == artifact.chunk_index
                and other.kind == artifact.kind
                and artifact.quote in other.quote
                and other.turn_ids == artifact.turn_ids
                and self._is_alike(artifact, other)
            ):
                return True

        return any(self._is_alike(artifact, other) for other in reading.first)

    def _is_alike(self, artifact: Artifact, other: Artifact) -> bool:
        return shared_words(artifact.content, other.content) > self.settings.glean_overlap

    def _dates(self, quote: str, chunk: MemoryChunk, claimed: str) -> tuple[str, ...]:
        if self.settings.dates == "point":
            return point_dates(quote, chunk.time)

        return resolve_dates(quote, chunk.time, claimed)

    def _locate(self, item: Any, batch: Batch) -> tuple[int, MemoryChunk, LocatedQuote] | None:
        """Finds an item's quote in the chunk it names, else in others, else by similar words."""
        if not isinstance(item, Mapping):
            return None

        named = named_chunk(item)
        preferred = [batch[named - 1]] if 1 <= named <= len(batch) else []
        claimed = text_of(item.get("quote"))

        for number, chunk in [*preferred, *batch]:
            if quote := find_verbatim(claimed, chunk):
                if (number, chunk) not in preferred:
                    self.counts["repaired"] += 1

                return number, chunk, quote

        for number, chunk in preferred or batch:
            if quote := find_nearest(claimed, chunk):
                self.counts["repaired"] += 1
                return number, chunk, quote

        return None


def batches(chunks: Sequence[MemoryChunk], most_chunks: int, most_tokens: int) -> list[Batch]:
    """The chunks of a conversation, in batches that one call reads."""
    numbered = list(enumerate(chunks))
    return list(by_tokens(numbered, lambda pair: pair[1].text, most_tokens, most_chunks))


def shared_words(content: str, other: str) -> float:
    """Words that two contents share, as a fraction of the smaller set of words; 0 without words."""
    words, others = set(content.lower().split()), set(other.lower().split())
    fewer = min(len(words), len(others))
    return len(words & others) / fewer if fewer else 0.0
