"""Facts as keys: chunks are also found by a model's notes about them.

Source: LongMemEval (Wu et al., ICLR 2025), whose best index expands each value's key with its
facts. The chunk is shown verbatim.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memeval.records import MemoryChunk
from memeval.systems.asking import take_notes
from memeval.systems.base import INGEST, POSITIVE, DumpItem, SystemSettings
from memeval.systems.chunk_file import iso_time, read_state, write_state
from memeval.systems.indexed import IndexedSystem, IndexT

TEMPLATE = "fact_keys"
FACTS_FILE = "facts.json"


@dataclass(frozen=True)
class FactKeySettings(SystemSettings):
    """The settings of a system whose chunks may also be found by facts."""

    index: Literal["chunk", "fact_keys"] = field(default="chunk", metadata=INGEST)
    """Keys of a chunk: its text, or also a model's notes of its facts (one call per chunk)."""
    fact_tokens: int = field(default=256, metadata=INGEST | POSITIVE)
    """Maximum tokens of a chunk's facts; only for `index=fact_keys`."""

    @property
    def has_facts(self) -> bool:
        """Whether a model notes facts."""
        return self.index == "fact_keys"


class FactKeyedSystem(IndexedSystem[IndexT]):
    """An indexed system whose texts may be expanded by facts: see `expand`."""

    settings: Any
    _lost: int

    @classmethod
    def ingest_templates(cls, settings: Any) -> tuple[str, ...]:
        return (TEMPLATE,) if settings.has_facts else ()

    def reset(self) -> None:
        super().reset()
        self._facts: list[str] = []
        self._lost = 0

    async def ingest(self, chunk: MemoryChunk) -> None:
        before = self.chunks[-1].text if self.chunks else ""
        super().ingest(chunk)
        if self.settings.has_facts:
            budget = self.settings.fact_tokens
            facts = await take_notes(
                self.parts, TEMPLATE, before=before, said=(chunk.text,), budget=budget
            )
            self._facts.append(facts or "")
            self._lost += facts is None

    def texts(self) -> list[str]:
        return self.expand([chunk.indexed(date=self.settings.index_date) for chunk in self.chunks])

    def expand(self, texts: Sequence[str]) -> list[str]:
        """The texts of the chunks, each with its facts below it."""
        if not self.settings.has_facts:
            return list(texts)

        pairs = zip(texts, self._facts, strict=True)
        return [f"{text}\n{facts}" if facts else text for text, facts in pairs]

    def dump(self) -> list[DumpItem] | None:
        if not self.settings.has_facts:
            return None

        items: list[DumpItem] = []
        for chunk, facts in zip(self.chunks, self._facts, strict=True):
            if facts:
                turn_ids, time = list(chunk.turn_ids), iso_time(chunk.time)
                items.append({"kind": "facts", "text": facts, "turn_ids": turn_ids, "time": time})

        return items

    def save(self, folder: Path) -> None:
        super().save(folder)
        if self.settings.has_facts:
            write_state(folder / FACTS_FILE, self._facts)

    async def load(self, folder: Path) -> None:
        if self.settings.has_facts:
            self._facts = read_state(folder / FACTS_FILE)

        await super().load(folder)
