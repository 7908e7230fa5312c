"""A running summary of the chunks that compressions drop from the window."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.llm.contract import Completion
from memeval.llm.memory_prompts import SummarisePrompt
from memeval.llm.prompts import load_builtin
from memeval.llm.tokens import batches, count_tokens, shorten
from memeval.records import Answer, IngestHealth, MemoryChunk, Query
from memeval.systems.asking import ask_for
from memeval.systems.base import (
    INGEST,
    POSITIVE,
    DumpItem,
    MemorySystem,
    SystemContext,
    SystemSettings,
    latest_first,
)
from memeval.systems.chunk_file import (
    read_chunks,
    read_state,
    split_window,
    write_chunks,
    write_state,
)

TEMPLATE = "summarise"
SUMMARY_FILE = "summary.json"


@dataclass(frozen=True)
class SummarizationSettings(SystemSettings):
    summary_tokens: int = field(default=512, metadata=INGEST | POSITIVE)
    """Maximum tokens of the summary, counted offline; a longer reply is cut after a sentence."""
    batch_tokens: int = field(default=8000, metadata=INGEST | POSITIVE)
    """Tokens that one call merges into the summary; a chunk is never split."""


class Summarization(MemorySystem):
    """Shows the summary and the window; a summary names no turns, so there is no retrieval."""

    settings_type = SummarizationSettings
    in_thread = False
    settings: SummarizationSettings

    def __init__(self, settings: SummarizationSettings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self.reset()

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        return (TEMPLATE,)

    def reset(self) -> None:
        self._window: list[MemoryChunk] = []
        self._summary = ""
        self._replies = 0
        self._overlong = 0
        self._ingested = 0
        self._lost = 0

    def ingest(self, chunk: MemoryChunk) -> None:
        self._ingested += 1
        self._window.append(chunk)

    async def compress(self, retained: Sequence[MemoryChunk]) -> None:
        leaving, self._window = split_window(self._window, retained)
        dropped = [chunk.text for chunk in leaving]
        for batch in batches(dropped, str, self.settings.batch_tokens):
            await self._merge(tuple(batch))

    async def _merge(self, texts: tuple[str, ...]) -> None:
        """Merges texts into the summary, which stays unchanged if no reply is usable."""
        template, budget = load_builtin(TEMPLATE), self.settings.summary_tokens
        prompt = SummarisePrompt(
            previous=self._summary,
            chunks=texts,
            budget_tokens=budget,
            system_text=template.system,
            user_template=template.user,
        )
        reply = await ask_for(
            self.parts.model,
            prompt,
            seed=self.parts.seed,
            read=lambda completion: _read_summary(completion, budget),
            # A reply that fills the budget would be cut here anyway, so no more of it is requested.
            holds_enough=lambda completion: count_tokens(completion.text.strip()) >= budget,
        )
        if reply is None:
            self._lost += len(texts)
            return

        self._summary = shorten(reply, budget)
        self._replies += 1
        self._overlong += self._summary != reply

    def health(self) -> IngestHealth:
        """Counts as lost the chunks without a usable reply after a second request."""
        # The window of a loaded memory may lose more chunks than were ingested since the load.
        asked = max(self._ingested, self._lost)
        return IngestHealth(asked=asked, stored=asked - self._lost, lost=self._lost)

    def dump(self) -> list[DumpItem]:
        return [{"kind": "summary", "text": self._summary}] if self._summary else []

    async def answer(self, query: Query) -> Answer:
        summary = [self._summary] if self._summary else []
        shown = [*summary, *(chunk.text for chunk in self._window)]
        order = latest_first(len(shown), after=len(summary))
        reply = await self.parts.reader.answer(query, shown, order=order)
        if not self._overlong:
            return reply.as_answer()

        cut = f"{self._overlong} of {self._replies} replies were longer than summary_tokens"
        return reply.as_answer(notes={"summary cut": cut})

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._window)
        state = {"summary": self._summary, "replies": self._replies, "overlong": self._overlong}
        write_state(folder / SUMMARY_FILE, state)

    def load(self, folder: Path) -> None:
        self._window = read_chunks(folder)
        state = read_state(folder / SUMMARY_FILE)
        self._summary = state["summary"]
        self._replies = state["replies"]
        self._overlong = state["overlong"]


def _read_summary(completion: Completion, budget: int) -> str | None:
    """The summary in a reply; None if the reply is empty or was cut before it filled the budget."""
    text = completion.text.strip()
    if completion.cut and count_tokens(text) < budget:
        return None

    # Nothing remains of a reply whose first word is longer than the budget.
    return text if shorten(text, budget) else None
