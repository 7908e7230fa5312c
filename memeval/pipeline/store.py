"""Rows on disk, appended as soon as they exist. A killed run leaves whole rows and at most one torn one, which is dropped on reading."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from memeval.errors import StorageError
from memeval.results import json_line

Row = Mapping[str, Any]


class RowStore:
    """One JSON-lines file: a header, then rows with an `id`; the last row of an id is the one that counts.

    Open in one process at a time: a second one waits, and then finds the first one's rows.
    """

    def __init__(self, path: Path, header: Mapping[str, Any], on_wait: Callable[[Path], None] | None = None) -> None:
        self.path, self.header = path, header
        self.rows: dict[str, Row] = {}
        self.dropped = 0
        """Lines that could not be read."""
        self._on_wait = on_wait
        self._lock = FileLock(f"{path}.lock")
        self._file: int | None = None

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._acquire()
            self._read()
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            self._lock.release()
            raise StorageError(f"{self.path} can't be opened: {error.strerror or error}") from error
        if not self.path.stat().st_size:
            self._write({"header": dict(self.header)})
        return self

    def _acquire(self) -> None:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            if self._on_wait:
                self._on_wait(self.path)
            self._lock.acquire()

    def _read(self) -> None:
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            self.dropped += 1
            os.truncate(self.path, whole)
        for line in data[:whole].splitlines():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                self.dropped += 1
                continue
            if isinstance(row, dict) and isinstance(row.get("id"), str):
                self.rows[row["id"]] = row

    def append(self, row: Row) -> None:
        """Writes a row, whole, before it returns. Raises `StorageError` where the disk refuses; earlier rows stay."""
        self._write(row)
        self.rows[row["id"]] = row

    def _write(self, row: Mapping[str, Any]) -> None:
        assert self._file is not None, "the store is not open"
        line = json_line(row, (",", ":")).encode()
        before = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, line)
            if written < len(line):
                raise OSError(28, "No space left on device")
        except OSError as error:
            os.ftruncate(self._file, before)
            raise StorageError(f"{self.path} can't be written: {error.strerror or error}") from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._lock.release()
