"""Rows on disk, appended as soon as they exist.

A killed run leaves whole rows and at most one torn one, which is dropped on reading.

Each line ends in a seal: a digest of the line and of the file's header, which contains the key. So
a line that was damaged, edited, or copied from the file of another key is detected, left out and
counted, and the row is computed again.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from filelock import FileLock, Timeout
from msgspec import Struct, field

from memeval.results.fields import read_json
from memeval.results.files import append_whole, json_line, write_atomically, writing
from memeval.results.private import FILE_MODE, make_folder, open_private
from memeval.results.shared_lines import SharedRows
from memeval.text.redaction import redacted_in, without_known_in

Json = Mapping[str, Any]


class StoredRow(Protocol):
    """A typed row, see `memeval.results.rows`."""

    @property
    def id(self) -> str: ...

    def to_json(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=StoredRow)
Parse = Callable[[Json], R]
"""Reads a row. Raises `ValueError` for a row with invalid content."""
_HEADER = re.compile(rb'^\{"header":(.*),"seal":"[0-9a-f]{16}"\}$', re.MULTILINE)
_SEAL = re.compile(rb',?"seal":"([0-9a-f]{16})"\}$')


class FileIsBusyError(Exception):
    """Another process has the file open."""


class SoundRows(Struct, Generic[R]):
    """Content of a file of rows."""

    rows: dict[str, R] = field(default_factory=dict)
    """Rows by id; the last sound row with an id counts."""
    seals: dict[str, str] = field(default_factory=dict)
    """The seal of each row, by its id."""
    replaced: list[tuple[R, str]] = field(default_factory=list)
    """Earlier rows with the same ids, and their seals, in the order in which they were replaced."""
    dropped: int = 0
    """Lines that are torn, damaged, edited, from the file of another key, or not valid rows."""
    has_header: bool = False
    """Whether the file has the expected header."""


def sealed_line(header: Json, row: Json) -> bytes:
    """A row as a sealed line of the file with this header."""
    body = _as_json(row)
    # Inserted into the JSON: the digest covers exactly these bytes. After `{}` there is no comma.
    comma = b"," if len(body) > 2 else b""
    return body[:-1] + comma + b'"seal":"' + _seal(_beginning(header), body).encode() + b'"}\n'


def seal_of(line: bytes) -> str:
    """The seal of a line of `sealed_line`."""
    return line[-19:-3].decode()


def _as_json(row: Json) -> bytes:
    return json_line(row, (",", ":")).encode().rstrip(b"\n")


def _beginning(header: Json) -> bytes:
    """The part of a seal's input that precedes the line."""
    return _as_json(header) + b"\n"


def _seal(beginning: bytes, body: bytes) -> str:
    return sha256(beginning + body).hexdigest()[:16]


def read_row_file(path: Path, header: Json, parse: Parse[R]) -> SoundRows[R]:
    """The sound rows of a file, line by line: it may be larger than memory. Raises `OSError`."""
    with path.open("rb") as file:
        return read_rows(file, header, parse)


def read_rows(lines: Iterable[bytes], header: Json, parse: Parse[R]) -> SoundRows[R]:
    """The sound rows among the complete lines of a file."""
    rows: SoundRows[R] = SoundRows()
    expected, beginning = {"header": dict(header)}, _beginning(header)
    for line in lines:
        # A line without an end is torn: its process died while writing.
        body, seal = _unsealed(line[:-1] if line.endswith(b"\n") else b"")
        content_of_line = None
        if seal is not None and seal == _seal(beginning, body):
            content_of_line = _object(body)

        if content_of_line == expected:
            rows.has_header = True
            continue

        row = _row(content_of_line, parse)
        if row is None or seal is None:
            rows.dropped += 1
        else:
            if row.id in rows.rows:
                rows.replaced.append((rows.rows[row.id], rows.seals[row.id]))

            rows.rows[row.id], rows.seals[row.id] = row, seal

    return rows


def sound_lines(content: bytes) -> list[bytes]:
    """The lines of a file whose seals match its header, the header first; none without a header."""
    first = content.partition(b"\n")[0]
    header = _object(first)
    if header is None or not isinstance(header.get("header"), dict):
        return []

    sound = _sealed_lines(content, {_beginning(header["header"])})
    return sound if sound[:1] == [first + b"\n"] else []


def _sealed_lines(content: bytes, beginnings: Collection[bytes]) -> list[bytes]:
    """The complete lines of a file whose seals match one of these beginnings."""
    sealed = []
    for line in content.split(b"\n")[:-1]:
        body, seal = _unsealed(line)
        if any(seal == _seal(beginning, body) for beginning in beginnings):
            sealed.append(line + b"\n")

    return sealed


def _unsealed(line: bytes) -> tuple[bytes, str | None]:
    """A line without its seal, and the seal, if it has one."""
    match = _SEAL.search(line)
    if match is None:
        return line, None

    return line[: match.start()] + b"}", match[1].decode()


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        content = read_json(line)
    except (ValueError, RecursionError):
        return None

    return content if isinstance(content, dict) else None


def _row(content: Json | None, parse: Parse[R]) -> R | None:
    """The row in a line; None if it is not a valid row."""
    if content is None or "header" in content:
        return None

    try:
        return parse(content)
    except ValueError:
        return None


class RowStore(Generic[R]):
    """One JSON-lines file: a header, then rows with an `id`; the last row with an id counts.

    Only one process at a time can have it open.
    """

    def __init__(
        self, path: Path, header: Json, parse: Parse[R], shared: SharedRows | None = None
    ) -> None:
        """`shared` contains the rows of which the file is this machine's copy."""
        self.path, self.header = path, header
        self._found: SoundRows[R] = SoundRows()
        self._parse = parse
        self._shared = shared
        # Shared rows are opened in one thread and closed in another.
        self._lock = FileLock(f"{path}.lock", mode=FILE_MODE, thread_local=False)
        self._file: int | None = None

    @property
    def rows(self) -> Mapping[str, R]:
        return self._found.rows

    @property
    def seals(self) -> Mapping[str, str]:
        return self._found.seals

    @property
    def dropped(self) -> int:
        """Lines that were left out: torn, damaged, edited, from the file of another key, or not
        valid rows.
        """
        return self._found.dropped

    def __enter__(self) -> Self:
        """Raises `FileIsBusyError` if another process has the file open, `StorageError` if the disk
        can't be read or written.
        """
        try:
            with writing(self.path, "opened"):
                make_folder(self.path.parent)
                self._hold()
                self._read()
                self._file = open_private(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                if not self._found.has_header:
                    self._write({"header": dict(self.header)})
        except BaseException:
            # The `with` block never begins, so nothing else closes the file and releases the lock.
            self._close()
            raise

        return self

    def _hold(self) -> None:
        """Locks out other processes, including those on other machines, and updates the copy."""
        # Does not wait: the event loop must not block while another process works.
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise FileIsBusyError(self.path) from error

        if self._shared is None:
            return
        if not self._shared.acquire():
            raise FileIsBusyError(self.path)

        copy = self.path.read_bytes() if self.path.exists() else b""
        content = self._shared.read()
        if content == copy:
            return

        # Rows that were written here without the store are added to it, unless it has them.
        known = read_rows(BytesIO(content), self.header, self._parse)
        copied = read_rows(BytesIO(copy), self.header, self._parse)
        lines = {line[-18:-2].decode(errors="replace"): line for line in copy.split(b"\n")}
        if copied.has_header and not known.has_header:
            self._shared.append(copy.partition(b"\n")[0] + b"\n")

        for row_id, seal in copied.seals.items():
            if row_id not in known.rows and seal in lines:
                self._shared.append(lines[seal] + b"\n")

        write_atomically(self.path, self._shared.read().decode(errors="replace"))

    def _read(self) -> None:
        if not self.path.exists():
            return

        self._found = read_row_file(self.path, self.header, self._parse)
        if self._found.dropped:
            content = self.path.read_bytes()
            # `verify` would always report a damaged line, and the next row would be appended to a
            # torn line and lost with it. Rows of other keys are kept.
            others = {header + b"\n" for header in _HEADER.findall(content)}
            lines = _sealed_lines(content, {_beginning(self.header), *others})
            if not self._found.has_header:
                lines.insert(0, sealed_line(self.header, {"header": dict(self.header)}))
                self._found.has_header = True

            write_atomically(self.path, b"".join(lines).decode())

    def append(self, row: R) -> R:
        """Writes a whole row, without secrets, before it returns; returns the row as stored.

        Raises `ValueError` for a row that could not be read back, and `StorageError` if the disk
        can't be written; earlier rows stay.
        """
        # Parsed as on reading, so that no row is stored that reading would reject.
        try:
            content = _clean(row.to_json())
            stored = self._parse(content)
            seal = self._write(content)
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"the result can't be stored: {error}") from error

        self._found.rows[row.id], self._found.seals[row.id] = stored, seal
        return stored

    def _write(self, row: Json) -> str:
        """Appends a row and returns its seal."""
        assert self._file is not None, "the store is not open"
        line = sealed_line(self.header, row)
        append_whole(self._file, line, self.path)
        # The store gets the line later. When the file is opened again, missing lines are added.
        if self._shared is not None:
            self._shared.append(line)

        return seal_of(line)

    def flush(self) -> None:
        """Returns when the shared rows are stored. Raises `StorageError` if one can't be."""
        if self._shared is not None:
            self._shared.flush()

    def __exit__(self, *error: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

        with writing(self.path, "closed"):
            try:
                if self._shared is not None:
                    self._shared.release()
            finally:
                self._lock.release()


def _clean(row: Json) -> Json:
    """The row as it may be stored: without known secrets, and without anything secret-looking in
    memeval's own texts (errors, notes).
    """
    clean: dict[str, Any] = dict(without_known_in(row))
    for name in ("error", "notes"):
        if name in clean:
            clean[name] = redacted_in(clean[name])

    return clean
