"""A running summary of what compressions drop from the window: extended at each of them, never overwritten."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.llm.contract import Completion
from memeval.llm.memory_prompts import SummarisePrompt
from memeval.llm.tokens import count_tokens, start_of_token
from memeval.prompts import load_builtin
from memeval.records import Answer, IngestHealth, MemoryChunk, Query
from memeval.systems.asking import asked
from memeval.systems.base import INGEST, MemorySystem, SystemContext, SystemSettings
from memeval.systems.chat.window import Window, check_positive
from memeval.systems.chunk_file import read_chunks, write_chunks

SUMMARY_FILE = "summary.json"
_WORD = re.compile(r"\S+(?=\s|$)")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*(?=\s)|(?=\n)")


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `summarization`."""

    summary_tokens: int = field(default=512, metadata=INGEST)
    """Tokens that the summary has at most, counted offline; a longer reply is cut at a sentence's end."""
    batch_tokens: int = field(default=8000, metadata=INGEST)
    """Tokens that are merged into the summary by one call; one unit is never split."""

    def __post_init__(self) -> None:
        check_positive(summary_tokens=self.summary_tokens, batch_tokens=self.batch_tokens)


class Summarization(MemorySystem):
    """Shows the summary and the window. Each compression merges the units that leave the window into the summary so far.

    A summary can't say which turns it stands on, so that no retrieval is shown.
    """

    settings_type = Settings
    in_thread = False
    settings: Settings

    def __init__(self, settings: Settings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self.reset()

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        return ("summarise",)

    def reset(self) -> None:
        self._window = Window()
        self._summary = ""
        self._replies = 0
        self._overlong = 0
        self._units = 0
        self._lost = 0

    def ingest(self, chunk: MemoryChunk) -> None:
        self._units += 1
        self._window.add(chunk)

    async def compress(self, retained: Sequence[MemoryChunk]) -> None:
        dropped = [chunk.text for chunk in self._window.cut(retained)]
        for batch in batches(dropped, self.settings.batch_tokens):
            await self._merge(batch)

    async def _merge(self, units: tuple[str, ...]) -> None:
        template, budget = load_builtin("summarise"), self.settings.summary_tokens
        prompt = SummarisePrompt(self._summary, units, budget, template.system, template.user)
        reply = await asked(
            self.parts.model,
            prompt,
            seed=self.parts.seed,
            read=lambda completion: _whole(completion, budget),
        )
        if reply is None:  # the summary so far stays
            self._lost += len(units)
            return
        self._summary = shortened(reply, budget)
        self._replies += 1
        self._overlong += self._summary != reply

    def health(self) -> IngestHealth:
        """Units that no summary of any use came for, after it was asked for once more."""
        return IngestHealth(asked=self._units, stored=self._units - self._lost, lost=self._lost)

    async def answer(self, query: Query) -> Answer:
        summary = [self._summary] if self._summary else []
        reply = await self.parts.reader.answer(
            query, [*summary, *(chunk.text for chunk in self._window.units)]
        )
        notes = (
            {
                "summary cut": f"{self._overlong} of {self._replies} replies were longer than summary_tokens"
            }
            if self._overlong
            else {}
        )
        return Answer(
            text=reply.text, raw=reply.raw, context_tokens=reply.context_tokens, notes=notes
        )

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._window.units)
        state = {"summary": self._summary, "replies": self._replies, "overlong": self._overlong}
        (folder / SUMMARY_FILE).write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")

    def load(self, folder: Path) -> None:
        self._window = Window(read_chunks(folder))
        state = json.loads((folder / SUMMARY_FILE).read_text(encoding="utf-8"))
        self._summary, self._replies, self._overlong = (
            state["summary"],
            state["replies"],
            state["overlong"],
        )


def _whole(completion: Completion, budget: int) -> str | None:
    """The summary; None where there is none, or where it was cut before it was as long as it may be."""
    text = completion.text.strip()
    if completion.cut and count_tokens(text) < budget:
        return None
    return text if shortened(text, budget) else None


def batches(units: Sequence[str], tokens: int) -> Iterator[tuple[str, ...]]:
    """The units in order, cut into runs of at most so many tokens; a longer unit is a run of its own."""
    batch: list[str] = []
    room = tokens
    for unit in units:
        size = count_tokens(unit)
        if batch and size > room:
            yield tuple(batch)
            batch, room = [], tokens
        batch.append(unit)
        room -= size
    if batch:
        yield tuple(batch)


def shortened(text: str, tokens: int) -> str:
    """The text within so many tokens: cut at the end of a sentence or a line, and between words where not even the first one fits."""
    if count_tokens(text) <= tokens:
        return text
    # Nothing before this place holds more; to count the tokens before each end takes the square of the text's length.
    room = text[: start_of_token(text, tokens)]
    for end_of in (_SENTENCE_END, _WORD):
        ends = [
            match.end()
            for match in end_of.finditer(text, 0, len(room) + 1)
            if match.end() <= len(room)
        ]
        if ends and (fitting := text[: ends[-1]].strip()):
            return fitting
    return ""
