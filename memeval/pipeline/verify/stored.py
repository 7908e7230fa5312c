"""Compares all stored files with their digests, whether or not a run needs them."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from memeval.errors import StorageError
from memeval.llm.cache_file import SELECT_ENTRIES, connect_to_read, sound_entry
from memeval.pipeline.execute.memory import read_manifest
from memeval.results import Texts, VerdictRow
from memeval.results.rows import answer_or_ingest
from memeval.results.store import Json, StoredRow, read_row_file
from memeval.store.inventory import StoredItem, StoredKind
from memeval.text.shown import counted, one_line
from memeval.text.typed import json_or_none


def verify_items(items: Iterable[StoredItem]) -> Iterator[tuple[StoredItem, list[str]]]:
    """Yields each item with its mismatches with digests; `verify` compares run folders."""
    for item in items:
        check = _CHECKS.get(item.kind)
        if check is None:
            continue

        try:
            yield item, list(check(item))
        except OSError as error:
            yield item, [f"can't be read: {error.strerror or error}"]


def _rows(item: StoredItem, *, stage: str, parse: Callable[[Json], StoredRow]) -> Iterator[str]:
    path = item.paths[0]
    header = _header(path)
    # The seals of rows depend on the header: under a wrong one every row would seem damaged.
    if header.get(stage) != item.key:
        yield "the header of its key is missing"
        return

    rows = read_row_file(path, header, parse)
    if rows.dropped:
        yield f"{counted(rows.dropped, 'line')} torn, damaged, edited or from another key"


def _header(path: Path) -> Json:
    """Header on the first line of the file, if any."""
    with path.open("rb") as file:
        first = file.readline()

    match json_or_none(first):
        case {"header": dict(header)}:
            return header

    return {}


def text_problems(path: Path) -> Iterator[str]:
    """Damaged texts of a file: they invalidate no answer, but can't be shown."""
    try:
        damaged = len(Texts(path).find_damaged())
    except StorageError as error:
        yield one_line(error)
        return

    if damaged:
        yield f"{counted(damaged, 'text is', 'texts are')} damaged and can't be shown"


def _memory(item: StoredItem) -> Iterator[str]:
    folder = item.paths[0]
    # A memory that can't be saved leaves only its dump, which nothing depends on.
    if not folder.is_dir():
        return

    try:
        read_manifest(folder, item.key)
    except ValueError as error:
        yield one_line(error)


def _cache(item: StoredItem) -> Iterator[str]:
    try:
        with closing(connect_to_read(item.paths[0])) as connection:
            rows = connection.execute(SELECT_ENTRIES)
            damaged = sum(sound_entry(row) is None for row in rows)
    except sqlite3.Error as error:
        yield f"can't be read: {one_line(error)}"
        return

    if damaged:
        yield f"the checksum does not match: {counted(damaged, 'entry', 'entries')}"


_CHECKS: dict[StoredKind, Callable[[StoredItem], Iterator[str]]] = {
    StoredKind.ANSWERS: partial(_rows, stage="answer", parse=answer_or_ingest),
    StoredKind.TEXTS: lambda item: text_problems(item.paths[0]),
    StoredKind.VERDICTS: partial(_rows, stage="judge", parse=VerdictRow.from_json),
    StoredKind.MEMORIES: _memory,
    StoredKind.CACHES: _cache,
}
