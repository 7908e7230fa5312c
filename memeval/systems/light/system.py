"""LIGHT (Tavakoli et al., ICLR 2026): an index of episodes, the latest pairs, and a scratchpad."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from memeval.judges.reading import read_yes
from memeval.llm.memory_prompts import RelevancePrompt
from memeval.llm.prompts import load_builtin
from memeval.llm.tokens import batches, count_tokens
from memeval.records import Answer, MemoryChunk, Query, Retrieved, Role
from memeval.retrieval.dense import DenseIndex
from memeval.systems.asking import take_notes
from memeval.systems.base import ANSWER, INGEST, NOT_NEGATIVE, POSITIVE, DumpItem, SystemSettings
from memeval.systems.chunk_file import iso_time, read_state, write_state
from memeval.systems.indexed import IndexedSystem, Ranked

Pair = tuple[MemoryChunk, ...]


def is_closed(pair: Sequence[MemoryChunk]) -> bool:
    """Whether a pair is full: it has two chunks, or one with several speakers."""
    return len(pair) > 1 or any(len(set(chunk.speakers)) > 1 for chunk in pair)


def pairs_of(chunks: Sequence[MemoryChunk]) -> Iterator[Pair]:
    """Pairs of neighbours in a session; a chunk of several speakers or at the end may be alone."""
    pair: list[MemoryChunk] = []
    for chunk in chunks:
        if pair and pair[0].session_id != chunk.session_id:
            yield tuple(pair)
            pair = []

        pair.append(chunk)
        if is_closed(pair):
            yield tuple(pair)
            pair = []

    if pair:
        yield tuple(pair)


def content_of(pair: Pair) -> str:
    """The words of a pair, without a date."""
    return "\n".join(chunk.content for chunk in pair)


def text_of(pair: Pair) -> str:
    """A pair as the reader sees it: under one date, that of its first chunk."""
    first, *rest = pair
    return "\n".join([first.text, *(chunk.content for chunk in rest)])


def turns_of(pair: Pair) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(chunk.turn_ids for chunk in pair)))


FACTS, NOTES, CONDENSE, FILTER = "light_facts", "light_notes", "light_condense", "light_filter"
"""Names of the prompt templates."""
STATE_FILE = "light.json"
# The published limit, which there applies to messages of the assistant. BEAM has 13 messages above
# 30,000 characters; the longest has 348,853.
MAX_CHARACTERS = 70_000
"""Maximum characters of a chunk in a prompt; chats have messages that run on without an end."""


@dataclass(frozen=True)
class LightSettings(SystemSettings):
    fact_tokens: int = field(default=512, metadata=INGEST | POSITIVE)
    """Maximum tokens of the facts and the summary by which a pair is indexed."""
    note_tokens: int = field(default=256, metadata=INGEST | POSITIVE)
    """Maximum tokens that a pair adds to the scratchpad."""
    scratchpad_tokens: int = field(default=8_000, metadata=INGEST | POSITIVE)
    """The scratchpad is condensed to this many tokens once it has twice as many."""
    recent_pairs: int = field(default=10, metadata=ANSWER | NOT_NEGATIVE)
    """Latest pairs that are shown; `top_k` does not limit them. 0 shows none."""
    context_tokens: int = field(default=14_000, metadata=ANSWER | POSITIVE)
    """Maximum tokens of the episodes and the latest pairs; a pair that does not fit is left out."""
    piece_tokens: int = field(default=512, metadata=ANSWER | POSITIVE)
    """Maximum tokens of a piece of the scratchpad, which is shown or left out as a whole."""
    filter_scratchpad: bool = field(default=True, metadata=ANSWER)
    """Whether the model selects the pieces relevant to the question; otherwise all are shown."""


class Light(IndexedSystem[DenseIndex]):
    """Shows the nearest pairs, the latest pairs, and the scratchpad's notes on the question.

    A pair is found by a model's facts about it, and is shown verbatim. The scratchpad has the
    model's notes on each pair; once they are too long, the model condenses them. Its retrieval and
    its ranking are the pairs that it finds. A compression loses nothing.
    """

    settings_type = LightSettings
    settings: LightSettings
    _lost: int

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        return (FACTS, NOTES, CONDENSE)

    def reset(self) -> None:
        super().reset()
        self._open_pair: list[MemoryChunk] = []
        self._before = ""
        self._pairs: list[Pair] = []
        self._facts: list[str] = []
        self._notes: list[str] = []
        self._condensed = False
        self._lost = 0

    # Building the memory

    async def ingest(self, chunk: MemoryChunk) -> None:
        self.chunks.append(chunk)
        if self._open_pair and self._open_pair[0].session_id != chunk.session_id:
            await self._finish_pair()

        self._open_pair.append(chunk)
        if is_closed(self._open_pair):
            await self._finish_pair()

    async def consolidate(self) -> None:
        await self._finish_pair()
        await super().consolidate()

    async def _finish_pair(self) -> None:
        """Has the model write the facts and the notes on the open pair."""
        pair = tuple(self._open_pair)
        self._open_pair = []
        if not pair:
            return

        texts = tuple(chunk.text[:MAX_CHARACTERS] for chunk in pair)
        facts = await self._write(FACTS, texts, self.settings.fact_tokens)
        notes = await self._write(NOTES, texts, self.settings.note_tokens)

        self._pairs.append(pair)
        self._facts.append(facts or "")
        if notes:
            self._notes.append(notes)
        if facts is None or notes is None:
            self._lost += len(pair)

        self._before = text_of(pair)[-MAX_CHARACTERS:]
        await self._condense()

    async def _condense(self) -> None:
        """Condenses a scratchpad that is too long; an unusable reply leaves it unchanged."""
        budget = self.settings.scratchpad_tokens
        # Twice, as published: 28,000 tokens there are condensed to 14,000.
        if sum(map(count_tokens, self._notes)) <= 2 * budget:
            return

        condensed = await self._write(CONDENSE, tuple(self._notes), budget)
        # An empty reply would lose all notes, so it counts as unusable.
        if condensed:
            self._notes = [condensed]
            self._condensed = True

    async def _write(self, name: str, said: tuple[str, ...], budget: int) -> str | None:
        """The model's text; empty if there is nothing to note, None if no reply is usable."""
        before = self._before if name != CONDENSE else ""
        return await take_notes(self.parts, name, before=before, said=said, budget=budget)

    def dump(self) -> list[DumpItem]:
        items: list[DumpItem] = []
        for pair, facts in zip(self._pairs, self._facts, strict=True):
            if facts:
                turn_ids, time = list(turns_of(pair)), iso_time(pair[0].time)
                items.append({"kind": "facts", "text": facts, "turn_ids": turn_ids, "time": time})

        items += [{"kind": "scratchpad", "text": note} for note in self._notes]
        return items

    # The index of episodes

    def texts(self) -> list[str]:
        """The facts of each pair; the pair's own words if it has no facts."""
        pairs = zip(self._facts, self._pairs, strict=True)
        return [facts or content_of(pair) for facts, pair in pairs]

    async def build(self, saved: Path | None) -> DenseIndex:
        # The pairs are not saved: they are computed from the chunks.
        if saved is not None:
            self._pairs = list(pairs_of(self.chunks))

        return await DenseIndex.open(self.parts.embedder, self.texts(), saved, self.index)

    def entries(self) -> Sequence[Retrieved]:
        return [Retrieved(text_of(pair), turns_of(pair), time=pair[0].time) for pair in self._pairs]

    async def rank(self, index: DenseIndex, query: Query, depth: int) -> Ranked:
        return await index.search(query.text, depth)

    # Answering

    async def answer(self, query: Query) -> Answer:
        ranked = await self.ranked(query, self.parts.top_k) if self._pairs else ()
        chosen = ranked[: self.parts.top_k]
        latest = range(max(0, len(self._pairs) - self.settings.recent_pairs), len(self._pairs))
        recalled = [position for position, _ in chosen]
        fitting = self._fitting(dict.fromkeys([*recalled, *latest]))
        relevant = await self._relevant(query)

        shown = [text_of(self._pairs[position]) for position in fitting]
        reply = await self.parts.reader.answer(query, [*shown, *relevant])

        kept = [(position, score) for position, score in chosen if position in fitting]
        notes: dict[str, str] = {}
        if self._condensed:
            notes["scratchpad"] = "condensed, because it was too long"
        if len(kept) < len(chosen):
            notes["episodes"] = "some did not fit into context_tokens"

        return self.answer_of(reply, chosen=kept, ranked=ranked, notes=notes)

    def _fitting(self, positions: Iterable[int]) -> list[int]:
        """The pairs that fit into `context_tokens`, tried in the given order."""
        room = self.settings.context_tokens
        fitting = []
        for position in positions:
            size = count_tokens(text_of(self._pairs[position]))
            if size <= room:
                fitting.append(position)
                room -= size

        return fitting

    async def _relevant(self, query: Query) -> list[str]:
        """The pieces of the scratchpad that are relevant to a question."""
        parts = pieces(self._notes, self.settings.piece_tokens)
        if not self.settings.filter_scratchpad:
            return parts

        return [piece for piece in parts if await self._bears_on(query, piece)]

    async def _bears_on(self, query: Query, piece: str) -> bool:
        template = load_builtin(FILTER)
        prompt = RelevancePrompt(
            question=query.shown,
            text=piece,
            system_text=template.system,
            user_template=template.user,
        )
        reply = await self.parts.model.complete(prompt, role=Role.ANSWER, seed=self.parts.seed)
        # A piece is left out only if the model says so.
        return read_yes(reply.text, answer=piece) is not False

    # Saving and loading

    def save(self, folder: Path) -> None:
        super().save(folder)
        state = {"facts": self._facts, "notes": self._notes, "condensed": self._condensed}
        write_state(folder / STATE_FILE, state)

    async def load(self, folder: Path) -> None:
        state = read_state(folder / STATE_FILE)
        self._facts = state["facts"]
        self._notes = state["notes"]
        self._condensed = state["condensed"]
        await super().load(folder)


def pieces(notes: Sequence[str], tokens: int) -> list[str]:
    """The notes in pieces of whole lines, up to `tokens` each; a longer line is one piece."""
    lines = filter(str.strip, chain.from_iterable(map(str.splitlines, notes)))
    return list(map("\n".join, batches(lines, str, tokens)))
