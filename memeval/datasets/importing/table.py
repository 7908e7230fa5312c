"""Reads tables of messages: CSV, TSV and Excel, with any columns."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path

from memeval.datasets.importing.message import ImportLog, Message, key_of
from memeval.datasets.importing.sources import check_archive
from memeval.datasets.importing.times import format_of, read_time
from memeval.datasets.io.fields import REPLACE, quoted
from memeval.errors import UserError, unknown
from memeval.text.shown import one_line

USUAL: Mapping[str, tuple[str, ...]] = {
    "speaker": ("speaker", "role", "author", "sender", "from", "username", "name", "user"),
    "text": ("text", "content", "message", "body", "msg", "utterance"),
    "time": ("time", "timestamp", "datetime", "date", "created_at", "sent_at", "ts"),
    "id": ("id", "message_id", "msg_id"),
    "session": ("session", "session_id"),
    "conversation": ("conversation", "conversation_id", "case_id", "chat_id", "dialogue_id"),
    "thread": ("thread", "thread_id"),
    "channel": ("channel", "channel_id", "room"),
    "user": ("user_id", "customer_id", "user"),
}
"""Usual columns of each field, in any case, with blanks or underscores."""
KEYS = ("speaker", "session", "conversation", "thread", "channel", "user")
"""Fields that messages can be grouped by, whatever their columns are called."""
NEEDED = ("speaker", "text")
DELIMITERS = (",", ";", "\t", "|")
LONGEST_CELL = 1 << 26
MOST_ROWS = 5_000_000


class Table:
    """A header and its rows."""

    def __init__(self, names: Sequence[str], rows: Iterable[Sequence[str]], path: Path) -> None:
        self.names = [name.strip() for name in names]
        self.rows = rows
        self.path = path

    @property
    def holds_questions(self) -> bool:
        return "question" in [name.lower() for name in self.names]


def parse_map(given: str | None) -> dict[str, str]:
    """`speaker=sender,text=body` as columns by field. Raises `UserError` for another form."""
    columns = {}
    for pair in (given or "").split(","):
        name, mark, column = pair.partition("=")
        if pair.strip() and (not mark or not column.strip()):
            raise UserError(f"--map: '{one_line(pair)}' is not FIELD=COLUMN.")
        if pair.strip() and name.strip() not in USUAL:
            raise unknown("field in --map", one_line(name.strip()), USUAL)
        if pair.strip():
            columns[name.strip()] = column.strip()

    return columns


def read_csv(content: bytes, path: Path, log: ImportLog) -> Table:
    """A table of text: encoding and delimiter are detected and logged.

    Raises `UserError` if it is empty, holds NUL bytes or breaks the quoting.
    """
    text = _decode(content, path, log)
    if not text.strip():
        raise UserError(f"{path} is empty.", REPLACE)
    if "\0" in text:
        raise UserError(f"{path} holds a NUL byte.", REPLACE)

    first = text.lstrip("\n\r").split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=first.count)
    if delimiter != ",":
        log.take(f"tables with {delimiter!r} between cells")

    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    rows = _csv_rows(reader, path)
    return Table(names=next(rows, []), rows=rows, path=path)


def read_excel(content: bytes, path: Path, log: ImportLog) -> Table:
    """The first sheet of a workbook.

    Raises `UserError` if it can't be read, or breaks a bound of archives.
    """
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise UserError(
            f"{path} is an Excel file, and reading it needs openpyxl.",
            "install it:  pip install 'memeval-bench[excel]'  or save the sheet as CSV",
        ) from None

    # Its sheets are unpacked by openpyxl, which bounds nothing.
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        check_archive(archive, path)

    try:
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        log.leave_out("sheets after the first", len(book.sheetnames) - 1)
        values = islice(book[book.sheetnames[0]].iter_rows(values_only=True), MOST_ROWS)
        rows = [list(map(_cell, row)) for row in values]
    except Exception as error:
        # A damaged file leads openpyxl to errors of many kinds.
        raise UserError(f"{path} can't be read as Excel: {one_line(error)}.", REPLACE) from error

    filled = (row for row in rows if any(row))
    return Table(names=next(filled, []), rows=filled, path=path)


def read_table(
    table: Table, given: Mapping[str, str], date_format: str | None, log: ImportLog
) -> Iterator[Message]:
    """The messages of a table.

    Raises `UserError` if a needed column is missing, and for dates whose day and month can't be
    told apart.
    """
    columns = _columns(table, given)
    rows = list(_whole_rows(table, log))
    at = columns.get("time")
    if date_format is None and at is not None:
        column = quoted(table.names[at])
        date_format = format_of((row[at] for row in rows), f"{table.path}: column {column}")
        if date_format:
            log.take(f"times as {date_format}", len(rows))

    for row in rows:
        cells = {field: row[place].strip() for field, place in columns.items()}
        if not cells["text"] or not cells["speaker"]:
            log.leave_out(f"rows without a {'text' if not cells['text'] else 'speaker'}")
            continue

        values = dict(zip(table.names, map(key_of, row), strict=True))
        keys = {
            name: value for name, value in values.items() if name != table.names[columns["text"]]
        }
        keys |= {name: key_of(cells[name]) for name in KEYS if cells.get(name)}
        session = cells.get("session") or cells.get("thread") or cells.get("conversation") or ""
        yield Message(
            speaker=log.clean(cells["speaker"]),
            text=log.clean(cells["text"]),
            session=session or str(table.path),
            keys={name: value for name, value in keys.items() if value},
            time=read_time(cells.get("time"), log, date_format),
            message_id=key_of(cells.get("id")) or None,
        )


def _columns(table: Table, given: Mapping[str, str]) -> dict[str, int]:
    """The place of each field's column."""
    plain = [name.lower().replace(" ", "_").replace("-", "_") for name in table.names]
    columns = {}
    for field, names in USUAL.items():
        if field in given:
            if given[field] not in table.names:
                raise unknown("column in --map", one_line(given[field]), table.names)

            columns[field] = table.names.index(given[field])
        elif known := [name for name in names if name in plain]:
            columns[field] = plain.index(known[0])

    for field in NEEDED:
        if field not in columns:
            raise UserError(
                f"{table.path}: no column is the {field}; there is "
                f"{one_line(', '.join(table.names), 400)}.",
                f"say which:  --map {field}=COLUMN",
            )

    return columns


def _whole_rows(table: Table, log: ImportLog) -> Iterator[Sequence[str]]:
    for row in table.rows:
        if len(row) == len(table.names):
            yield row
        else:
            log.leave_out("rows with more or fewer cells than the header")


def _csv_rows(reader: Iterator[list[str]], path: Path) -> Iterator[list[str]]:
    number = 0
    # A message may be longer than the 131,072 characters that `csv` takes otherwise.
    usual = csv.field_size_limit(LONGEST_CELL)
    try:
        for row in reader:
            number += 1
            if any(cell.strip() for cell in row):
                yield row
    except csv.Error as error:
        raise UserError(f"{path}: row {number + 1}: {one_line(error)}.", REPLACE) from error
    finally:
        csv.field_size_limit(usual)


def _decode(content: bytes, path: Path, log: ImportLog) -> str:
    marks = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    by_mark = [encoding for mark, encoding in marks.items() if content.startswith(mark)]
    # Without a mark, every second byte of Western text in UTF-16 is zero.
    half = content[:200]
    if not by_mark and half.count(0) * 3 > len(half):
        by_mark = ["utf-16-le" if half[1::2].count(0) > half[::2].count(0) else "utf-16-be"]

    for encoding in by_mark or ["utf-8", "cp1252"]:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue

        if encoding not in ("utf-8", "utf-8-sig"):
            log.take(f"files as {encoding}")

        return text

    raise UserError(f"{path} is not UTF-8, UTF-16 or cp1252 text.", REPLACE)


def _cell(value: object) -> str:
    if value is None:
        return ""

    return value.isoformat() if isinstance(value, datetime) else str(value)
