"""What `store verify` reports about a cache's entries."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memeval.llm.cache import Cache
from memeval.pipeline.verify.stored import verify_items
from memeval.store.inventory import StoredItem, StoredKind


@pytest.mark.parametrize(
    ("statement", "problems"),
    [
        ("SELECT 1", []),
        ("UPDATE seals SET crc = crc + 1 WHERE key = 'a'", ["the checksum does not match: 1 en"]),
        ("DELETE FROM seals WHERE key = 'a'", ["the checksum does not match: 1 en"]),
        ("DROP TABLE seals", ["can't be read: no such table"]),
    ],
)
def test_entries_without_a_valid_checksum_are_reported(
    tmp_path: Path, statement: str, problems: list[str]
) -> None:
    path = tmp_path / "responses.sqlite"
    cache = Cache(path)
    cache.put_all({"a": b"{}", "b": b"{}"}, "run")
    cache.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)

    item = StoredItem(StoredKind.CACHES, (path,), key="", size=1, changed=0.0)
    ((_, lines),) = verify_items([item])
    assert len(lines) == len(problems)
    assert all(line.startswith(problem) for line, problem in zip(lines, problems, strict=True))
