"""BM25 over the chunks as they were ingested."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.records import MemoryChunk, Query, Retrieved
from memeval.retrieval.bm25 import Bm25Index, Ties, Tokens
from memeval.systems.base import ANSWER, INGEST, RecallSystem, SystemContext, SystemSettings
from memeval.systems.chunk_file import read_chunks, write_chunks


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `bm25`."""

    index_date: bool = field(default=False, metadata=INGEST)
    """Whether dates are indexed too; they are shown either way. Without them the ranks are rank_bm25's over `speaker: text`."""
    tokens: Tokens = field(default="alnum", metadata=ANSWER)
    """`alnum`: runs of letters and digits of the lower-cased text; `space`: what stands between spaces, as it is."""
    ties: Ties = field(default="position", metadata=ANSWER)
    """Which of two equal scores comes first: `position`: the unit ingested first; `reversed`: as LongMemEval's code sorts."""


class Bm25(RecallSystem):
    """Ranks all chunks by rank-bm25's BM25Okapi over `speaker: text`."""

    settings_type = Settings
    in_thread = False
    settings: Settings

    def __init__(self, settings: Settings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self.reset()

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        self._chunks: list[MemoryChunk] = []
        self._units: list[Retrieved] = []
        self._index = Bm25Index(())

    def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)

    def consolidate(self) -> None:
        self._index = Bm25Index(
            [chunk.indexed(date=self.settings.index_date) for chunk in self._chunks],
            self.settings.tokens,
        )
        self._units = [Retrieved(chunk.text, chunk.turn_ids) for chunk in self._chunks]

    def recall(self, query: Query, depth: int) -> list[Retrieved]:
        """The full ranking; units below `depth` are there for the metrics and carry no score."""
        order, scores = self._index.ranking(query.text, self.settings.ties)
        ranked = [self._units[position] for position in order]
        for place, score in enumerate(scores[:depth]):
            ranked[place] = Retrieved(ranked[place].text, ranked[place].turn_ids, score)
        return ranked

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._chunks)

    def load(self, folder: Path) -> None:
        self._chunks = read_chunks(folder)
        self.consolidate()
