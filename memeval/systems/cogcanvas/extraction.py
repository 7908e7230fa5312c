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
from memeval.systems.cogcanvas.dates import point_dates, resolved, time_expressions
from memeval.systems.cogcanvas.quotes import Found, lines, nearest, verbatim

EARLIER_CHARACTERS = 100
"""Characters of an earlier artifact that the model is shown."""
AROUND = 100
"""Characters on both sides of an expression of time that its event keeps."""
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
class Reading:
    """One reading of a batch."""

    number: int
    """The batch's number, from 0."""
    first: Sequence[Artifact] = ()
    """What the first reading found, at a second one."""
    earlier: Sequence[str] = ()
    """What earlier batches gave, as the model is shown it."""
    found: list[Artifact] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ExtractionRules:
    """How conversations are read."""

    gleaning: bool = True
    """Whether each batch is read a second time, for what the first reading missed."""
    glean_overlap: float = 0.8
    """Share of common words from which on, not included, what the second reading says is dropped.
    """
    earlier: int = 0
    """Latest artifacts of earlier batches that a first reading is shown."""
    dates: str = "span"
    """`span`, or `point`: every relative expression is one day."""
    temporal_fallback: bool = False
    """Whether expressions of time that no artifact quotes become events."""


@dataclass
class Extractor:
    """Asks a model for the artifacts of a conversation."""

    model: LanguageModel
    template: PromptTemplate
    """Of the first reading."""
    glean_template: PromptTemplate
    """Of the second one."""
    seed: int
    rules: ExtractionRules = ExtractionRules()
    counts: Counter[str] = field(default_factory=Counter)
    """What happened: `calls`, replies that could not be read (`unreadable`) or broke off (`cut`),
    and artifacts whose quote was `repaired`, that were `dropped` for a quote that nobody said, that
    were of an `unknown_type`, or that were there already (`repeated`).
    """
    lost: set[int] = field(default_factory=set)
    """Positions of the chunks for which no reply was of use."""

    async def extract(self, cut: Sequence[Batch]) -> list[Artifact]:
        """The artifacts of all batches in the order in which they were said.

        All batches are asked for at once, unless each is shown what the earlier ones gave. Raises
        `ModelError`.
        """
        if self.rules.earlier:
            artifacts = await self._one_by_one(cut)
        else:
            artifacts = await self._at_once(cut)

        if self.rules.temporal_fallback:
            artifacts += self._fallback(cut, artifacts)

        return sorted(artifacts, key=lambda artifact: (artifact.unit, artifact.start))

    async def _one_by_one(self, cut: Sequence[Batch]) -> list[Artifact]:
        artifacts: list[Artifact] = []
        for number, batch in enumerate(cut):
            latest = artifacts[-self.rules.earlier :]
            earlier = [
                f"({artifact.kind}) {artifact.content[:EARLIER_CHARACTERS]}" for artifact in latest
            ]
            artifacts += await self._batch(number, batch, earlier)

        return artifacts

    async def _at_once(self, cut: Sequence[Batch]) -> list[Artifact]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._batch(number, batch, ()))
                    for number, batch in enumerate(cut)
                ]
        except ExceptionGroup as errors:
            # The first failure cancels the other calls, and is the failure of the ingest.
            raise errors.exceptions[0] from errors

        return [artifact for task in tasks for artifact in task.result()]

    async def _batch(self, number: int, batch: Batch, earlier: Sequence[str]) -> list[Artifact]:
        first = Reading(number=number, earlier=earlier)
        await self._read(batch, first)

        # Where nothing was found, the second prompt would be the first one again.
        if not self.rules.gleaning or not first.found:
            return first.found

        second = Reading(number=number, first=first.found)
        await self._read(batch, second)
        return first.found + second.found

    async def _read(self, batch: Batch, reading: Reading, part: str | None = None) -> None:
        """One request of a reading; over a `part` of its only chunk, where one is given.

        Where the reply breaks off, the model is asked again for the chunks from the last one that
        it reached, else for each half.
        """
        here = {number for number, _ in batch}
        texts = tuple(chunk.text for _, chunk in batch) if part is None else (part,)
        asked = await ask(
            self.model,
            self._prompt(batch, texts, reading),
            seed=self.seed,
            read=lambda completion: self._kept(completion, batch, reading),
        )
        reply = asked.value
        if reply is None and asked.cut and await self._read_halves(batch, texts, reading):
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

            await self._read(batch[last - 1 :], reading)
        elif not (asked.cut and await self._read_halves(batch, texts, reading)):
            self.lost |= {number for number, _ in batch[max(last, 1) - 1 :]}

    async def _read_halves(self, batch: Batch, texts: Sequence[str], reading: Reading) -> bool:
        """A request for each half of a batch, or of its only text; False where there are no halves.

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
            await self._read(half, reading, part)

        return True

    def _prompt(self, batch: Batch, texts: tuple[str, ...], reading: Reading) -> ExtractPrompt:
        here = {number for number, _ in batch}
        found = (*reading.first, *reading.found)
        noted = [artifact for artifact in found if artifact.unit in here]
        template = self.glean_template if reading.first else self.template
        return ExtractPrompt(
            units=texts,
            known=(*reading.earlier, *(artifact.content for artifact in noted)),
            system_text=template.system,
            user_template=template.user,
            quotes=tuple(artifact.quote for artifact in noted) if reading.first else (),
        )

    def _kept(self, completion: Completion, batch: Batch, reading: Reading) -> Reply | None:
        """The reply, after what it says was kept.

        None where there is no list, or where a first reading names nothing that was said.
        """
        self.counts["calls"] += 1
        reply = read_reply(completion.text)
        is_beginning = not reading.first and not reading.found
        before = self.counts["dropped"]
        if reply is None:
            return None

        for item in reply.items:
            self._keep(item, batch, reading)

        all_dropped = self.counts["dropped"] - before == len(reply.items) > 0
        return None if is_beginning and all_dropped else reply

    def _keep(self, item: Any, batch: Batch, reading: Reading) -> None:
        """Adds what an item of a reply says, if its quote can be found."""
        located = self._locate(item, batch) if isinstance(item, Mapping) else None
        if located is None:
            self.counts["dropped"] += 1
            return

        kind = _kind(item)
        if kind is None:
            self.counts["unknown_type"] += 1
            return

        number, chunk, quote = located
        artifact = Artifact(
            kind=kind,
            content=_text(item.get("content")) or quote.quote,
            quote=quote.quote,
            speaker=quote.line.speaker,
            turn_ids=quote.line.turn_ids,
            time=chunk.time,
            dates=self._dates(quote.quote, chunk, _text(item.get("date"))),
            people=_people(item, quote.line.speaker),
            unit=number,
            start=quote.start,
            batch=reading.number,
        )
        if self._is_repeated(artifact, reading):
            self.counts["repeated"] += 1
        else:
            reading.found.append(artifact)

    def _is_repeated(self, artifact: Artifact, reading: Reading) -> bool:
        """Whether a reading said it before, or a second one says what the first one did.

        A request after a reply that broke off may say the end of that reply again.
        """
        is_quoted = any(
            other.unit == artifact.unit
            and artifact.quote in other.quote
            and other.turn_ids == artifact.turn_ids
            for other in reading.found
        )
        return is_quoted or any(
            shared_words(artifact.content, other.content) > self.rules.glean_overlap
            for other in reading.first
        )

    def _dates(self, quote: str, chunk: MemoryChunk, claimed: str) -> tuple[str, ...]:
        if self.rules.dates == "point":
            return point_dates(quote, chunk.time)

        return resolved(quote, chunk.time, claimed)

    def _fallback(self, cut: Sequence[Batch], artifacts: Sequence[Artifact]) -> list[Artifact]:
        """An event for each expression of time that no artifact of its turn quotes.

        Dates that memeval puts before a chunk are no part of its content, so that none of them
        becomes an event.
        """
        found = []
        for batch_number, batch in enumerate(cut):
            for number, chunk in batch:
                quoted = [artifact for artifact in artifacts if artifact.unit == number]
                found += self._events(batch_number, number, chunk, quoted)

        return found

    def _events(
        self, batch: int, number: int, chunk: MemoryChunk, quoted: Sequence[Artifact]
    ) -> list[Artifact]:
        events = []
        for line in lines(chunk):
            for start, expression in time_expressions(line.text):
                place = line.start + start
                if _is_quoted(place, quoted):
                    continue

                dates = self._dates(expression, chunk, "")
                around = line.text[max(0, start - AROUND) : start + len(expression) + AROUND]
                told = dates[0] if dates else expression
                events.append(
                    Artifact(
                        kind="event",
                        content=f"TIME: {told} (originally: {expression}) - {around}",
                        quote=expression,
                        speaker=line.speaker,
                        turn_ids=line.turn_ids,
                        time=chunk.time,
                        dates=dates,
                        people=(),
                        unit=number,
                        start=place,
                        batch=batch,
                    )
                )

        return events

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


def _is_quoted(place: int, artifacts: Sequence[Artifact]) -> bool:
    """Whether a place in a chunk's content lies in the quote of one of its artifacts."""
    return any(
        artifact.start <= place < artifact.start + len(artifact.quote) for artifact in artifacts
    )


def shared_words(content: str, other: str) -> float:
    """Common words of two contents, over the words of the one that has fewer; 0 without words."""
    words, others = set(content.lower().split()), set(other.lower().split())
    fewer = min(len(words), len(others))
    return len(words & others) / fewer if fewer else 0.0


def _kind(item: Mapping[str, Any]) -> str | None:
    """The type of an item: a key fact where it names none, None where nobody knows the type."""
    kind = _text(item.get("type")).lower().replace(" ", "_") or "key_fact"
    return kind if kind in KINDS else None


def _people(item: Mapping[str, Any], speaker: str) -> tuple[str, ...]:
    people = item.get("people")
    names = dict.fromkeys(_text(name) for name in people) if isinstance(people, list) else {}
    return tuple(name for name in names if name and name != speaker)


def _text(value: Any) -> str:
    return " ".join(value.split("\n")).strip() if isinstance(value, str) else ""


def _chunk_number(item: Any) -> int:
    """The number of the chunk that an item names; 0 where it names none."""
    number = item.get("unit") if isinstance(item, Mapping) else None
    if isinstance(number, str) and len(number) < 10 and number.strip().isdecimal():
        return int(number)

    return number if isinstance(number, int) else 0
