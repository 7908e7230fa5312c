"""The rows and texts of a home, as a copy reads and adds to them: as it does with a database's."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from memeval.process.private import make_folder, open_private
from memeval.results.files import append_whole
from memeval.results.texts import Texts, TextStore


class Lines(Protocol):
    """The lines of one file of rows, in either place."""

    def read(self) -> bytes: ...

    def append_all(self, lines: Sequence[bytes]) -> None: ...


class HomeLines:
    """The lines of a file of rows in the home."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> bytes:
        content = self._path.read_bytes() if self._path.exists() else b""
        return content[: content.rfind(b"\n") + 1]

    def append_all(self, lines: Sequence[bytes]) -> None:
        """Appends lines behind the last whole one."""
        # A torn line at the end is cut off, as a run would: else it would spoil the next one.
        whole = len(self.read())
        descriptor = open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.ftruncate(descriptor, whole)
            append_whole(descriptor, b"".join(lines), self._path)
        finally:
            os.close(descriptor)


class HomeTexts:
    """The texts of a file in the home."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def references(self) -> set[str]:
        texts = Texts(self._path)
        return set(texts.references()) - set(texts.damaged())

    def read(self, references: Sequence[str]) -> dict[str, bytes]:
        texts = Texts(self._path)
        known = set(texts.references())
        return {ref: texts.line(ref) for ref in references if ref in known}

    def put(self, lines: dict[str, bytes]) -> None:
        """Stores lines, each unless its reference is there already."""
        make_folder(self._path.parent)
        with TextStore(self._path) as store:
            for ref, line in lines.items():
                store.take(json.loads(line), ref)
