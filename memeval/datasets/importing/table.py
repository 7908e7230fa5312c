"""Reads tables of messages: CSV, TSV and Excel, with any columns."""

import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Self

from msgspec import Struct

from memeval.datasets.importing.message import ImportLog, Message, key_of
from memeval.datasets.importing.sources import check_archive
from memeval.datasets.importing.times import format_of, read_time
from memeval.datasets.io.fields import REPLACE, quoted
from memeval.datasets.io.tables import Row, csv_rows
from memeval.errors import UserError, require_library, unknown
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
"""Usual column names of each field, in upper or lower case, with spaces, hyphens or underscores."""
KEYS = ("speaker", "session", "conversation", "thread", "channel", "user")
"""Fields that messages can be grouped by, under any column name."""
NEEDED = ("speaker", "text")
DELIMITERS = (",", ";", "\t", "|")
QUESTION = "question"
"""A table with this column contains questions."""
MAX_TITLE_ROWS = 20
"""The header is one of the first rows, up to this number."""
SEPARATOR = re.compile(r"sep=(.)\r?\n")
"""The first line of some files that Excel writes."""
BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
LONGEST = 3
"""The longest run of such characters that is usual in a Western language."""
MAX_ROWS = 5_000_000


class RawTable(Struct, frozen=True):
    names: Sequence[str]
    rows: Iterator[Row]
    path: Path

    @classmethod
    def of(
        cls, rows: Iterator[Row], path: Path, user_columns: Mapping[str, str], log: ImportLog
    ) -> Self:
        """The table in some rows; a title may be above its header.

        Raises `UserError` if there is no row.
        """
        above_rows = list(islice(rows, MAX_TITLE_ROWS))
        first = [list(map(str.strip, cells)) for _, cells in above_rows]
        if not first:
            raise UserError(f"{path} contains no rows.", REPLACE)

        above = next((at for at, names in enumerate(first) if _is_header(names, user_columns)), 0)
        log.leave_out("rows above the header", above)
        return cls(first[above], chain(above_rows[above + 1 :], rows), path)

    @property
    def holds_questions(self) -> bool:
        return QUESTION in map(str.lower, self.names)


def parse_map(text: str | None) -> dict[str, str]:
    """Columns by field, as in `speaker=sender,text=body`. Raises `UserError` if it is malformed."""
    columns = {}
    for pair in filter(str.strip, (text or "").split(",")):
        name, _, column = map(str.strip, pair.partition("="))
        if not column:
            raise UserError(f"--map: '{one_line(pair)}' must be FIELD=COLUMN.")
        if name not in USUAL:
            raise unknown("field in --map", one_line(name), USUAL)

        columns[name] = column

    return columns


def read_csv(
    content: bytes, path: Path, user_columns: Mapping[str, str], log: ImportLog
) -> RawTable:
    """Reads a table from text; detects and logs encoding and delimiter. `user_columns` is as in
    `--map`.

    Raises `UserError` if it is empty, contains NUL bytes or has broken quoting.
    """
    text = _decode(content, path, log)
    rows = text.lstrip("\n\r")
    separator = SEPARATOR.match(rows)
    if separator is None:
        delimiter = _delimiter(rows)
    else:
        delimiter, rows = separator[1], rows[separator.end() :]

    log.note_conversion(f"tables with {delimiter!r} between cells")
    above = text[: len(text) - len(rows)].count("\n")
    filled = (row for row in csv_rows(rows, path, delimiter, above) if any(map(str.strip, row[1])))
    return RawTable.of(filled, path, user_columns, log)


def _delimiter(text: str) -> str:
    """The delimiter that occurs most often in the first line that has any."""
    for line in text.split("\n", MAX_TITLE_ROWS)[:MAX_TITLE_ROWS]:
        if any(mark in line for mark in DELIMITERS):
            return max(DELIMITERS, key=line.count)

    return DELIMITERS[0]


def read_excel(
    content: bytes, path: Path, user_columns: Mapping[str, str], log: ImportLog
) -> RawTable:
    """Reads the first sheet of a workbook.

    Raises `UserError` if it can't be read, or exceeds a limit for archives.
    """
    needed = f"{path} is an Excel file: save it as CSV, or read it with openpyxl"
    require_library("openpyxl", needed, "excel")

    import openpyxl  # type: ignore[import-untyped]

    try:
        # openpyxl unpacks the sheets, and has no limits.
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_archive(archive, path)

        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        log.leave_out("sheets after the first", len(book.sheetnames) - 1)
        values = islice(book[book.sheetnames[0]].iter_rows(values_only=True), MAX_ROWS)
        rows = [list(map(_cell, row)) for row in values]
    except UserError:
        raise
    except Exception as error:
        # A damaged file makes openpyxl raise errors of many kinds.
        raise UserError(f"{path} can't be read as Excel: {one_line(error)}.", REPLACE) from error

    filled = ((number, row) for number, row in enumerate(rows, start=1) if any(row))
    return RawTable.of(filled, path, user_columns, log)


def read_table(
    table: RawTable, user_columns: Mapping[str, str], date_format: str | None, log: ImportLog
) -> Iterator[Message]:
    """The messages of a table.

    Raises `UserError` if a needed column is missing, and for dates whose day and month can't be
    told apart.
    """
    columns = _columns(table, user_columns)
    rows = list(_whole_rows(table, log))
    at = columns.get("time")
    if at is None:
        log.note_conversion("tables without times; if a column has them:  --map time=COLUMN")
    else:
        location = f"{table.path}: column {quoted(table.names[at])}"
        date_format = format_of(map(itemgetter(at), rows), location, date_format)

    for row in rows:
        cells = {field: row[position].strip() for field, position in columns.items()}
        if not cells["text"]:
            log.leave_out("rows without a text")
            continue
        if not cells["speaker"]:
            log.leave_out("rows without a speaker")
            continue

        keys = dict(zip(table.names, map(key_of, row), strict=True))
        del keys[table.names[columns["text"]]]
        keys |= {name: key_of(cells[name]) for name in KEYS if cells.get(name)}

        # Sessions may be counted from 1 in each conversation.
        session = cells.get("session") or cells.get("thread")
        names = filter(None, (cells.get("conversation"), session))
        yield Message(
            speaker=log.clean(cells["speaker"]),
            text=log.clean(cells["text"]),
            session="\n".join(names) or str(table.path),
            keys={name: value for name, value in keys.items() if value},
            time=read_time(cells.get("time"), log, date_format),
            message_id=key_of(cells.get("id")) or None,
        )


def _columns(table: RawTable, user_columns: Mapping[str, str]) -> dict[str, int]:
    for column in user_columns.values():
        if column not in table.names:
            raise unknown("column in --map", one_line(column), table.names)

    columns = _known_columns(table.names, user_columns)
    missing = sorted(set(NEEDED) - columns.keys())
    if missing:
        raise UserError(
            f"{table.path}: no column is the {' or the '.join(missing)}; the columns are "
            f"{one_line(', '.join(filter(None, table.names)), 400)}.",
            f"use:  --map {'=COLUMN,'.join(missing)}=COLUMN",
            "for a table of questions, name the columns question and answer",
        )

    for field, position in columns.items():
        if table.names.count(table.names[position]) > 1:
            name = one_line(table.names[position], 100)
            raise UserError(
                f"{table.path}: two columns are called '{name}': which is the {field}?",
                "rename one of them",
            )

    return columns


def _known_columns(names: Sequence[str], user_columns: Mapping[str, str]) -> dict[str, int]:
    """The position of each field that has a column: the given column, or one with a usual name."""
    plain = plain_names(names)
    columns = {}
    for field, usual in USUAL.items():
        wanted, present = usual, plain
        if field in user_columns:
            wanted, present = (user_columns[field],), list(names)

        for name in wanted:
            if name in present:
                columns[field] = present.index(name)
                break

    return columns


def plain_names(names: Sequence[str]) -> list[str]:
    """Names of columns in lower case, with underscores for spaces and hyphens."""
    return [name.lower().replace(" ", "_").replace("-", "_") for name in names]


def _is_header(names: Sequence[str], user_columns: Mapping[str, str]) -> bool:
    return (
        QUESTION in map(str.lower, names)
        or set(NEEDED) <= _known_columns(names, user_columns).keys()
    )


def _whole_rows(table: RawTable, log: ImportLog) -> Iterator[Sequence[str]]:
    for _, row in table.rows:
        if len(row) == len(table.names):
            yield row
        else:
            log.leave_out("rows with more or fewer cells than the header")


def _decode(content: bytes, path: Path, log: ImportLog) -> str:
    marks = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    encodings = ["utf-8", "cp1252"]
    # Without a mark, every second byte of Western text in UTF-16 is zero.
    half = content[:200]
    if half.count(0) * 3 > len(half):
        is_little = half[1::2].count(0) > half[::2].count(0)
        encodings = ["utf-16-le" if is_little else "utf-16-be"]

    for mark, encoding in marks.items():
        if content.startswith(mark):
            encodings = [encoding]

    for encoding in encodings:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue

        if encoding == "cp1252" and not _is_western(text):
            break

        log.note_conversion(f"files as {encoding.removesuffix('-sig')}")
        return text

    raise UserError(
        f"{path} is not UTF-8, UTF-16 or cp1252 text.",
        "save it as UTF-8, for example:  iconv -f GBK -t UTF-8 OLD > NEW  (or SHIFT_JIS, CP1251 …)",
    )


def _is_western(text: str) -> bool:
    """Whether text that was decoded as cp1252 is in a Western language.

    In these, characters beyond ASCII mostly stand alone; Cyrillic or Chinese text has runs of them.
    """
    runs = list(map(len, BEYOND_ASCII.findall(text)))
    return 2 * sum(run for run in runs if run > LONGEST) <= sum(runs)


def _cell(value: object) -> str:
    if value is None:
        return ""
    # A date without a time of day is read as midnight.
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("T00:00:00")

    return str(value)
