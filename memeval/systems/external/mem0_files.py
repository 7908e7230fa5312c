"""The files of a saved mem0 memory: its rows and their vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from memeval.retrieval.embedding.contract import Vectors

ROWS_FILE, VECTORS_FILE = "memories.json", "memories.npy"


@dataclass(frozen=True)
class SavedMemories:
    """The rows of mem0's store, as they were saved."""

    ids: list[str]
    payloads: list[dict[str, Any]]
    vectors: Vectors
    unparsed: int
    """Replies of the model that mem0 could not read."""

    @property
    def width(self) -> int | None:
        """Numbers per vector; None without a memory."""
        is_table = self.vectors.ndim > 1 and len(self.vectors) > 0
        return int(self.vectors.shape[1]) if is_table else None


def write_memories(folder: Path, rows: Sequence[Any], unparsed: int) -> None:
    """Writes the rows of mem0's store into `folder`."""
    memories = [{"id": str(row.id), "payload": row.payload} for row in rows]
    state = {"unparsed": unparsed, "memories": memories}
    (folder / ROWS_FILE).write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")

    vectors = np.array([row.vector for row in rows], dtype=np.float32)
    np.save(folder / VECTORS_FILE, vectors, allow_pickle=False)


def read_memories(folder: Path) -> SavedMemories:
    """Reads the files of `write_memories`. Raises `ValueError` if they don't match."""
    state = json.loads((folder / ROWS_FILE).read_text(encoding="utf-8"))
    memories = SavedMemories(
        ids=[row["id"] for row in state["memories"]],
        payloads=[row["payload"] for row in state["memories"]],
        vectors=np.load(folder / VECTORS_FILE, allow_pickle=False),
        unparsed=state["unparsed"],
    )
    if len(memories.vectors) != len(memories.ids):
        raise ValueError(
            f"{folder / VECTORS_FILE} holds {len(memories.vectors)} vectors "
            f"for {len(memories.ids)} memories"
        )

    return memories
