"""A memory system with a setting of each stage, a window that compression cuts, and a memory that can be saved."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from memeval.errors import UserError
from memeval.records import MemoryChunk, Query, Retrieved
from memeval.systems.base import ANSWER, INGEST, RecallSystem, SystemSettings


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `recent`."""

    shortest: int = field(default=20, metadata=INGEST)
    """Characters that a unit must have to be kept: another value ingests again."""
    newest_first: bool = field(default=True, metadata=ANSWER)
    """The order in which units are shown: another value answers again from the same memory."""
    version: int = field(default=1, metadata=INGEST)
    """Raised with each change of this code: results are kept by settings, not by code."""

    def __post_init__(self) -> None:
        if self.shortest < 0:
            raise UserError(f"system.shortest must be at least 0, but is {self.shortest}")


class Recent(RecallSystem):
    """The newest units, whatever the question; after a compression, only what the window retained and what came later."""

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
        newest = (
            self.chunks[::-1] if self.settings.newest_first else self.chunks[-self.parts.top_k :]
        )
        return [Retrieved(chunk.text, chunk.turn_ids) for chunk in newest[:depth]]

    def save(self, folder: Path) -> None:
        rows = [
            [
                c.chunk_id,
                c.content,
                c.time and c.time.isoformat(),
                c.session_id,
                c.turn_ids,
                c.speakers,
            ]
            for c in self.chunks
        ]
        (folder / "chunks.json").write_text(json.dumps(rows), encoding="utf-8")

    def load(self, folder: Path) -> None:
        rows = json.loads((folder / "chunks.json").read_text(encoding="utf-8"))
        self.chunks = [
            MemoryChunk(
                name,
                content,
                datetime.fromisoformat(time) if time else None,
                session,
                tuple(turns),
                tuple(speakers),
            )
            for name, content, time, session, turns, speakers in rows
        ]
