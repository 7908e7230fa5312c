"""A memory system with a setting of each stage, a window that a compression cuts, and a memory that
can be saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memeval.errors import UserError
from memeval.records import MemoryChunk, Query, Retrieved
from memeval.systems.base import ANSWER, INGEST, RecallSystem, SystemSettings
from memeval.systems.chunk_file import read_chunks, write_chunks


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `recent`."""

    shortest: int = field(default=20, metadata=INGEST)
    """Characters that a chunk must have to be kept: another value ingests again."""
    newest_first: bool = field(default=True, metadata=ANSWER)
    """The order in which chunks are shown: another value answers again from the same memory."""
    version: int = field(default=1, metadata=INGEST)
    """Raised when a module that this file imports has changed; an edit of this file is noticed."""

    def __post_init__(self) -> None:
        if self.shortest < 0:
            raise UserError(f"system.shortest must be at least 0, but is {self.shortest}")


class Recent(RecallSystem):
    """The newest chunks, regardless of the question.

    After a compression, only what the window retained and what came later.
    """

    settings_type = Settings
    in_thread = False

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        self.chunks: list[MemoryChunk] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        if len(chunk.content) >= self.settings.shortest:
            self.chunks.append(chunk)

    def compress(self, retained: Sequence[MemoryChunk]) -> None:
        self.chunks = [chunk for chunk in self.chunks if chunk in retained]

    def recall(self, query: Query, depth: int) -> list[Retrieved]:
        if self.settings.newest_first:
            newest = self.chunks[::-1]
        else:
            newest = self.chunks[-self.parts.top_k :]
        return [
            Retrieved(text=chunk.text, turn_ids=chunk.turn_ids, time=chunk.time)
            for chunk in newest[:depth]
        ]

    def save(self, folder: Path) -> None:
        write_chunks(folder, self.chunks)

    def load(self, folder: Path) -> None:
        self.chunks = read_chunks(folder)
