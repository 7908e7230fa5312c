"""From chunks to artifacts: a model reads them in batches, and what it claims is checked against
what was said.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memeval.llm.contract import Completion, LanguageModel
from memeval.llm.memory_prompts import ExtractPrompt
from memeval.llm.metering import current_ledger
from memeval.llm.tokens import count_tokens
from memeval.prompts import PromptTemplate
from memeval.records import MemoryChunk, Role
from memeval.systems.asking import ask, halves
from memeval.systems.cogcanvas.artifacts import KINDS, Artifact
from memeval.systems.cogcanvas.dates import resolved
from memeval.systems.cogcanvas.quotes import Found, nearest, verbatim

_BETWEEN = re.compile(r"[, \t\r\n]*")

Batch = Sequence[tuple[int, MemoryChunk]]
"""Chunks with their positions in the conversation."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply, read."""

    items: tuple[Any, ...]
    """The members of its list, as far as they are whole."""
    closed: bool
    """False where the list breaks off: the reply was cut."""


def read_reply(text: str) -> Reply | None:
    """The first JSON list in a reply.

    None where there is no list, or where it breaks off before its first whole member.
    """
    decoder = json.JSONDecoder()
    items: list[Any] = []
    at = text.find("[") + 1
    while at > 0:
        # The pattern also matches nothing, so there is always a match.
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
        if text.startswith("]", at):
            return Reply(tuple(items), closed=True)

        try:
            item, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):  # a reply of brackets alone is as deep as it is long
            break

        items.append(item)

    return Reply(tuple(items), closed=False) if items else None


def batches(chunks: Sequence[MemoryChunk], most_chunks: int, most_tokens: int) -> list[Batch]:
    """The chunks in order, in batches of at most `most_chunks` and `most_tokens`.

    A longer chunk is a batch of its own.
    """
    cut: list[list[tuple[int, MemoryChunk]]] = []
    room = 0
    for number, chunk in enumerate(chunks):
        tokens = count_tokens(chunk.text)
        if not cut or len(cut[-1]) >= most_chunks or tokens > room:
            cut.append([])
            room = most_tokens

        cut[-1].append((number, chunk))
        room -= tokens

    return list(cut)


@dataclass
class Extractor:
    """Asks a model for the artifacts of a conversation."""

    model: LanguageModel
    template: PromptTemplate
    seed: int
    gleaning: bool
    """Whether each batch is read a second time, for what the first reading missed."""
    counts: Counter[str] = field(default_factory=Counter)
    """What happened: `calls`, replies that could not be read (`unreadable`) or broke off (`cut`),
    and artifacts whose quote was `repaired`, that were `dropped` for a quote that nobody said, or
    that were there already (`repeated`).
    """
    lost: set[int] = field(default_factory=set)
    """Positions of the chunks for which no reply was of use."""

    async def extract(self, cut: Sequence[Batch]) -> list[Artifact]:
        """The artifacts of all batches in the order in which they were said.

        All batches are asked for at once. Raises `ModelError`.
        """
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._batch(batch)) for batch in cut]
        except ExceptionGroup as errors:
            # The first failure cancels the other calls, and is the failure of the ingest.
            raise errors.exceptions[0] from errors

        artifacts = [artifact for task in tasks for artifact in task.result()]
        return sorted(artifacts, key=lambda artifact: (artifact.unit, artifact.start))

    async def _batch(self, batch: Batch) -> list[Artifact]:
        found: list[Artifact] = []
        await self._read(batch, found)

        # Where nothing was found, the second prompt would be the first one again.
        if self.gleaning and found:
            await self._read(batch, found)

        return found

    async def _read(self, batch: Batch, found: list[Artifact], part: str | None = None) -> None:
        """One pass over a batch; over a `part` of its only chunk, where one is given.

        Where the reply breaks off, the model is asked again for the chunks from the last one that
        it reached, else for each half.
        """
        here = {number for number, _ in batch}
        known = tuple(artifact.quote for artifact in found if artifact.unit in here)
        texts = tuple(chunk.text for _, chunk in batch) if part is None else (part,)
        asked = await ask(
            self.model,
            ExtractPrompt(texts, known, self.template.system, self.template.user),
            seed=self.seed,
            read=lambda completion: self._kept(completion, batch, found),
        )
        reply = asked.value
        if reply is None and asked.cut and await self._read_halves(batch, texts, found):
            return

        if reply is None:
            self.counts["unreadable"] += 1
            self.lost |= here
            return

        if reply.closed:
            # A second reading makes up for a first one that was cut; that of a part does not.
            if part is None:
                self.lost -= here

            return

        self.counts["cut"] += 1
        last = max(_chunk_number(item) for item in reply.items)
        if 2 <= last <= len(batch):
            if asked.cut:
                current_ledger().drop_cut(Role.INGEST)

            await self._read(batch[last - 1 :], found)
        elif not (asked.cut and await self._read_halves(batch, texts, found)):
            self.lost |= {number for number, _ in batch[max(last, 1) - 1 :]}

    async def _read_halves(self, batch: Batch, texts: Sequence[str], found: list[Artifact]) -> bool:
        """A pass over each half of a batch, or of its only text; False where there are no halves.

        The request for the whole was cut: it is not counted as such any more.
        """
        middle = len(batch) // 2
        passes: list[tuple[Batch, str | None]]
        if middle:
            passes = [(batch[:middle], None), (batch[middle:], None)]
        else:
            passes = [(batch, half) for half in halves(texts[0])]

        if not passes:
            return False

        current_ledger().drop_cut(Role.INGEST)
        for half, part in passes:
            await self._read(half, found, part)

        return True

    def _kept(self, completion: Completion, batch: Batch, found: list[Artifact]) -> Reply | None:
        """The reply, after what it says was kept.

        None where there is no list, or where a first reading names nothing that was said.
        """
        self.counts["calls"] += 1
        reply, first, before = read_reply(completion.text), not found, self.counts["dropped"]
        if reply is None:
            return None

        for item in reply.items:
            self._keep(item, batch, found)

        all_dropped = self.counts["dropped"] - before == len(reply.items) > 0
        return None if first and all_dropped else reply

    def _keep(self, item: Any, batch: Batch, found: list[Artifact]) -> None:
        """Adds what an item of a reply says, if its quote can be found."""
        located = self._locate(item, batch) if isinstance(item, Mapping) else None
        if located is None:
            self.counts["dropped"] += 1
            return

        number, chunk, quote = located
        is_repeated = any(
            other.unit == number
            and quote.quote in other.quote
            and other.turn_ids == quote.line.turn_ids
            for other in found
        )
        if is_repeated:
            self.counts["repeated"] += 1
            return

        found.append(_artifact(item, number, chunk, quote))

    def _locate(
        self, item: Mapping[str, Any], batch: Batch
    ) -> tuple[int, MemoryChunk, Found] | None:
        """Where an item's quote is.

        In the chunk that it names, else in another one of the batch, else what it must have meant.
        """
        named = _chunk_number(item)
        own = [batch[named - 1]] if 1 <= named <= len(batch) else []
        claimed = _text(item.get("quote"))

        for number, chunk in [*own, *batch]:
            if quote := verbatim(claimed, chunk):
                if (number, chunk) not in own:
                    self.counts["repaired"] += 1

                return number, chunk, quote

        for number, chunk in own or batch:
            if quote := nearest(claimed, chunk):
                self.counts["repaired"] += 1
                return number, chunk, quote

        return None


def _artifact(item: Mapping[str, Any], number: int, chunk: MemoryChunk, found: Found) -> Artifact:
    kind = _text(item.get("type")).lower().replace(" ", "_")
    people = item.get("people")
    names = dict.fromkeys(_text(name) for name in people) if isinstance(people, list) else {}
    return Artifact(
        kind=kind if kind in KINDS else "key_fact",
        content=_text(item.get("content")) or found.quote,
        quote=found.quote,
        speaker=found.line.speaker,
        turn_ids=found.line.turn_ids,
        time=chunk.time,
        dates=resolved(found.quote, chunk.time, _text(item.get("date"))),
        people=tuple(name for name in names if name and name != found.line.speaker),
        unit=number,
        start=found.start,
    )


def _text(value: Any) -> str:
    return " ".join(value.split("\n")).strip() if isinstance(value, str) else ""


def _chunk_number(item: Any) -> int:
    """The number of the chunk that an item names; 0 where it names none."""
    number = item.get("unit") if isinstance(item, Mapping) else None
    if isinstance(number, str) and len(number) < 10 and number.strip().isdecimal():
        return int(number)

    return number if isinstance(number, int) else 0
