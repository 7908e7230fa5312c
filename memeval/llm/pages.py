"""Reads the rows of a damaged SQLite file page by page, as `.recover` of the `sqlite3` shell does.

Python's own module can't do that. The layout is that of https://www.sqlite.org/fileformat2.html.
Every page that looks like a leaf or a node of a tree is read, whether or not the tree still leads
there. The newer copies of pages in the write-ahead log are read in place of those in the file.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = list[Any]

USUAL_PAGE = 4096
LARGEST_ROW = 64_000_000
"""Bytes; a row that claims to be larger is damaged."""
_NODES = {0x02: 4, 0x0A: 0, 0x0D: 0}
"""Bytes before the size of each cell, by the types of pages that hold rows.

These are nodes and leaves of an index, which a table without row ids is, and leaves of a table.
"""
_TABLE_LEAF = 0x0D
_FIXED = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
"""Bytes of a value by its serial type; the types of texts and blobs give their own length."""


class NoRowError(Exception):
    """The bytes are not a row."""


def rows(path: Path) -> Iterator[Row]:
    """The rows of all tables in the order of the pages, with those of the schema and free pages."""
    pages = _Pages(path)
    for number in range(1, pages.count + 1):
        yield from _rows_of(pages, number)


class _Pages:
    """The pages of a file, the newer ones of its log first."""

    def __init__(self, path: Path) -> None:
        self._data = _map_file(path)
        self._log = _map_file(path.with_name(f"{path.name}-wal"))
        self._newer: dict[int, int] = {}

        # The file's header may be damaged; the log's header gives the size as well.
        in_file = _page_size(int.from_bytes(self._data[16:18], "big"))
        in_log = _page_size(int.from_bytes(self._log[8:12], "big"))
        self.size = in_file or in_log or USUAL_PAGE
        self._read_log()
        self.count = max([-(-len(self._data) // self.size), *self._newer])

    def _read_log(self) -> None:
        """Notes where the log holds pages, up to its last whole transaction."""
        if len(self._log) < 32 or int.from_bytes(self._log[:4], "big") not in (
            0x377F0682,
            0x377F0683,
        ):
            return

        # A log begins with 32 bytes, and each page in it with 24. The magic numbers above differ
        # in the byte order of the log's checksums, which are not checked here.
        salt, pending = self._log[16:24], {}
        for start in range(32, len(self._log) - 24 - self.size + 1, 24 + self.size):
            number, committed = struct.unpack(">II", self._log[start : start + 8])
            # Another salt marks the rest of an older log, which SQLite overwrites from the start.
            if self._log[start + 8 : start + 16] != salt:
                break

            pending[number] = start + 24
            if committed:
                self._newer |= pending
                pending = {}

    def page(self, number: int) -> bytes:
        if (start := self._newer.get(number)) is not None:
            return self._log[start : start + self.size]
        if not 1 <= number <= self.count:
            raise NoRowError

        return self._data[(number - 1) * self.size : number * self.size]


def _map_file(path: Path) -> bytes | mmap.mmap:
    """A file's bytes; empty for a missing file, an empty one, or a folder."""
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return b""


def _page_size(field: int) -> int | None:
    """The page size in a header's field; None for an impossible one."""
    # The field has two bytes, so the largest size is written as 1.
    size = 65536 if field == 1 else field
    return size if 512 <= size <= 65536 and size & (size - 1) == 0 else None


def _rows_of(pages: _Pages, number: int) -> Iterator[Row]:
    page = pages.page(number)
    # The first page begins with the file's header.
    head = 100 if number == 1 else 0
    if len(page) < head + 8 or page[head] not in _NODES:
        return

    page_type = page[head]
    # A node's header holds a pointer more.
    first = head + (12 if page_type == 0x02 else 8)

    for cell in range(int.from_bytes(page[head + 3 : head + 5], "big")):
        at = int.from_bytes(page[first + 2 * cell : first + 2 * cell + 2], "big")
        try:
            start = at + _NODES[page_type]
            yield _record(_payload(pages, page, start, of_table=page_type == _TABLE_LEAF))
        except (NoRowError, IndexError, UnicodeDecodeError):
            continue


def _payload(pages: _Pages, page: bytes, at: int, *, of_table: bool) -> bytes:
    """The bytes of a row, those on overflow pages included."""
    size, at = _varint(page, at)
    if of_table:
        _, at = _varint(page, at)
    if size > LARGEST_ROW:
        raise NoRowError

    # A large row keeps `local` bytes here and goes on in a chain of overflow pages; the formulas
    # are those of the file format.
    usable = pages.size
    most = usable - 35 if of_table else (usable - 12) * 64 // 255 - 23
    if size <= most:
        return _whole(page[at : at + size], size)

    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    parts, left = [page[at : at + local]], size - local
    following = int.from_bytes(page[at + local : at + local + 4], "big")

    while left > 0:
        more = pages.page(following)
        parts.append(more[4 : 4 + left])
        left -= usable - 4
        following = int.from_bytes(more[:4], "big")

    return _whole(b"".join(parts), size)


def _whole(payload: bytes, size: int) -> bytes:
    if len(payload) != size or not size:
        raise NoRowError

    return payload


def _record(payload: bytes) -> Row:
    end, at = _varint(payload, 0)
    types = []
    while at < end:
        kind, at = _varint(payload, at)
        types.append(kind)

    values: Row = []
    for kind in types:
        size = _FIXED[kind] if kind in _FIXED else (kind - 12) // 2
        # The file format reserves the types 10 and 11, so no row has them.
        if kind in (10, 11) or at + size > len(payload):
            raise NoRowError

        values.append(_value(kind, payload[at : at + size]))
        at += size

    return values


def _value(kind: int, data: bytes) -> Any:
    if kind >= 12:
        # From 12 on, odd types are texts and even ones are blobs.
        return data.decode() if kind % 2 else data
    if kind == 7:
        return struct.unpack(">d", data)[0]
    if kind in (8, 9):
        return kind - 8

    return int.from_bytes(data, "big", signed=True) if kind else None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where the next one begins."""
    value = 0
    for count in range(8):
        byte = data[at + count]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + count + 1

    # A ninth byte gives all of its eight bits.
    return value << 8 | data[at + 8], at + 9
