"""Chunks as JSON, the form in which most systems save them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from memeval.records import MemoryChunk

CHUNKS_FILE = "chunks.json"


def write_chunks(
    folder: Path, chunks: Sequence[MemoryChunk], window: Sequence[MemoryChunk] | None = None
) -> None:
    """Writes the chunks in order, and the window of a compression if there was one."""
    state = {"chunks": _rows(chunks), "window": None if window is None else _rows(window)}
    (folder / CHUNKS_FILE).write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")


def read_chunks(folder: Path) -> list[MemoryChunk]:
    """The chunks of `write_chunks`. Raises `OSError` or what damaged JSON raises."""
    return [_chunk(row) for row in _state(folder)["chunks"]]


def read_window(folder: Path) -> list[MemoryChunk] | None:
    """The window that `write_chunks` wrote; None if it wrote none."""
    rows = _state(folder)["window"]
    return None if rows is None else [_chunk(row) for row in rows]


def _state(folder: Path) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((folder / CHUNKS_FILE).read_text(encoding="utf-8"))
    return state


def _rows(chunks: Sequence[MemoryChunk]) -> list[dict[str, Any]]:
    # Field by field: `asdict` copies each value deeply, which takes longer than all the rest.
    names = [field.name for field in fields(MemoryChunk)]
    rows = []
    for chunk in chunks:
        row = {name: getattr(chunk, name) for name in names}
        row["time"] = chunk.time.isoformat() if chunk.time else None
        if not chunk.user:
            del row["user"]

        rows.append(row)

    return rows


def _chunk(row: dict[str, Any]) -> MemoryChunk:
    return MemoryChunk(
        chunk_id=row["chunk_id"],
        content=row["content"],
        time=datetime.fromisoformat(row["time"]) if row["time"] else None,
        session_id=row["session_id"],
        turn_ids=tuple(row["turn_ids"]),
        speakers=tuple(row["speakers"]),
        user=row.get("user", ""),
    )
