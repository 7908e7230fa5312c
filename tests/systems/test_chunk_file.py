"""Saved chunks are read back as they were, and a damaged file is a parse error."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memeval.records import MemoryChunk
from memeval.systems.chunk_file import CHUNKS_FILE, read_saved, write_chunks

PLAIN = MemoryChunk("c1", "Grüezi \U0001f600\0", datetime(2024, 1, 2, 3, 4, 5), "s1", ("D1:1",), ())
OF_USER = MemoryChunk("c2", "", None, "s1", (), ("Ann", "Bob"), user="u")
TIMED = MemoryChunk("c3", "x", datetime(2024, 1, 2, microsecond=7, tzinfo=UTC), "s2", (), ())
HALF = MemoryChunk("c4", "half of a pair: \ud83d", None, "s2", (), ())


@pytest.mark.parametrize("chunks", [[], [PLAIN], [PLAIN, OF_USER, TIMED], [PLAIN, HALF]])
@pytest.mark.parametrize("window", [None, [], [OF_USER, HALF]])
def test_chunks_and_window_are_read_as_they_were_written(
    tmp_path: Path, chunks: list[MemoryChunk], window: list[MemoryChunk] | None
) -> None:
    write_chunks(tmp_path, chunks, window)
    saved = read_saved(tmp_path)
    assert (saved.chunks, saved.window) == (chunks, window)
    content = json.loads((tmp_path / CHUNKS_FILE).read_text(encoding="utf-8"))
    assert [row["chunk_id"] for row in content["chunks"]] == [chunk.chunk_id for chunk in chunks]


@pytest.mark.parametrize(
    "damage", ["", "[]", "{", '{"chunks": []}', '{"chunks": [1], "window": 0}']
)
def test_damaged_file_is_a_parse_error(tmp_path: Path, damage: str) -> None:
    (tmp_path / CHUNKS_FILE).write_text(damage, encoding="utf-8")
    with pytest.raises(ValueError, match=r"Expect|missing"):
        read_saved(tmp_path)
