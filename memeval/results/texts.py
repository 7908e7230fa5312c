"""Texts that rows refer to, each stored once under a digest of its content.

A file `<answer key>.texts.jsonl` is next to the answers. A line contains a text, or a joined text:
the references of its parts and the separator between them. So a context of ten chunks, and the
prompt around it, take ten references, and the chunks are stored once. Rows are valid without the
file: a missing or damaged text is shown as missing, and no answer is lost.
"""

import json
import os
import re
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from memeval.results.files import append_whole, json_line, without_halves, writing
from memeval.results.private import open_private
from memeval.results.shared_lines import SharedTexts
from memeval.text.names import text_digest
from memeval.text.redaction import without_known

TEXTS_SUFFIX = ".texts.jsonl"
_ID = re.compile(rb'\{"id":"([0-9a-f]{16})",')
"""Beginning of a line: `id` is written first, so that lines are indexed without parsing."""
WITHHELD = "withheld"
"""Member that replaces a text that may not be redistributed."""
TEXTS_AT_ONCE = 64
SEND_S = 1.0
"""Texts are sent to a shared store in batches of this many, or after this many seconds."""
_DEEPEST = 8
"""Maximum depth of joined texts within joined texts."""


def texts_file(answers: Path) -> Path:
    """The file of the texts that a file of answers refers to."""
    return answers.with_suffix(TEXTS_SUFFIX)


def clean(text: str) -> str:
    """Text as it is stored: without known secrets, and without halves of surrogate pairs."""
    return without_known(without_halves(text))


def reference(text: str) -> str:
    """Digest under which a text is stored."""
    return text_digest(text)[:16]


class Joined(Struct, frozen=True):
    """A stored text that is joined from parts."""

    separator: str
    parts: tuple[str, ...]
    """References to the parts."""


ReadStored = Callable[[str], str | Joined | None]
_KEPT = 4096
"""Maximum stored texts kept in memory while a file is checked."""


class Texts:
    """The texts of one file, read on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, tuple[int, int]] = {}
        """Offset and length of each text's line."""
        self._reader: int | None = None
        self._read_lines()

    def _read_lines(self) -> None:
        offset = 0
        with writing(self.path, "read"), suppress(FileNotFoundError), self.path.open("rb") as file:
            for line in file:
                match = _ID.match(line)
                if match and line.endswith(b"\n"):
                    self._lines[match[1].decode()] = (offset, len(line))

                offset += len(line)

    def references(self) -> list[str]:
        return list(self._lines)

    def line(self, ref: str) -> bytes:
        """The line of an existing reference, unchanged."""
        if self._reader is None:
            # A page requests thousands of texts: opening the file for each would take half the
            # time. It is closed with this object.
            self._reader = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            weakref.finalize(self, os.close, self._reader)

        offset, length = self._lines[ref]
        return os.pread(self._reader, length, offset)

    def get(self, ref: str | None) -> str | None:
        """The text of a reference; None if it is missing or damaged."""
        return None if ref is None else self._get(ref, self.read_stored)

    def _get(self, ref: str, read: ReadStored, depth: int = 0) -> str | None:
        # In an edited file, a text may contain itself: the limit on the depth ends the recursion.
        stored = read(ref) if depth <= _DEEPEST else None
        if not isinstance(stored, Joined):
            return stored

        texts = [self._get(part, read, depth + 1) for part in stored.parts]
        joined = stored.separator.join(text for text in texts if text is not None)
        return joined if reference(joined) == ref else None

    def read_stored(self, ref: str) -> str | Joined | None:
        """A stored text: whole, or as the parts that it is joined from.

        None if it is missing or damaged. The parts of a joined text are not checked.
        """
        entry = self._entry(ref) or {}
        text, separator, parts = entry.get("text"), entry.get("join"), entry.get("parts")
        if isinstance(text, str):
            return text if reference(text) == ref else None
        if not isinstance(separator, str) or not isinstance(parts, list):
            return None

        return Joined(separator, tuple(part for part in parts if isinstance(part, str)))

    def find_damaged(self) -> list[str]:
        """References whose texts can't be read, except those that a package withholds."""
        # Most texts are parts of several others.
        read = lru_cache(_KEPT)(self.read_stored)
        unread = [ref for ref in self._lines if self._get(ref, read) is None]
        return [ref for ref in unread if not self._is_withheld(ref, depth=0)]

    def _is_withheld(self, ref: str, depth: int) -> bool:
        """Whether a package withholds a text, or a part of it, and contains only its digest."""
        entry = self._entry(ref) or {}
        parts = entry.get("parts")
        if depth > _DEEPEST or not isinstance(parts, list):
            return entry.get(WITHHELD) is True

        return any(self._is_withheld(part, depth + 1) for part in parts if isinstance(part, str))

    def _entry(self, ref: str) -> dict[str, Any] | None:
        if ref not in self._lines:
            return None

        try:
            entry = json.loads(self.line(ref))
        except (OSError, ValueError, RecursionError):
            return None

        return entry if isinstance(entry, dict) else None


class TextStore(Texts):
    """A file of texts, open for writing.

    This process has locked the file of its answers, so no other process writes here.
    """

    def __init__(
        self, path: Path, shared: SharedTexts | None = None, *, is_fresh: bool = False
    ) -> None:
        """`shared` contains the texts of which the file is this machine's copy. With `is_fresh`,
        damaged texts are written again: to find them takes as long as to read all texts.
        """
        super().__init__(path)
        self._is_fresh = is_fresh
        self._file: int | None = None
        self._shared = shared
        self._unsent: dict[str, bytes] = {}
        self._sent_at = 0.0
        self._joined: dict[str, str] = {}
        """References to joined texts, by the digest of the whole before secrets are removed."""

    def __enter__(self) -> Self:
        if self._is_fresh:
            # Their next rows write them again.
            for ref in self.find_damaged():
                del self._lines[ref]

        with writing(self.path, "opened"):
            self._drop_torn_line()
            self._file = open_private(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        self._sync_shared()
        return self

    def _sync_shared(self) -> None:
        """Updates the copy, and adds to the store the texts that were written here without it."""
        if self._shared is None:
            return

        # Texts have no order and never change: each side gets its missing texts without a
        # comparison.
        known = self._shared.references()
        missing = {ref: line for ref in self._lines.keys() - known if (line := self.line(ref))}
        self._shared.put(missing)
        for ref, line in self._shared.read(sorted(known - self._lines.keys())).items():
            self._append(line, ref)

    def _drop_torn_line(self) -> None:
        if not self.path.exists():
            return

        # Otherwise the next line would be appended to a torn one, and be lost with it.
        size = self.path.stat().st_size
        whole = max((start + length for start, length in self._lines.values()), default=0)
        with self.path.open("rb+") as file:
            file.seek(whole)
            rest = file.read()
            if not rest.endswith(b"\n") and rest:
                os.truncate(self.path, size - len(rest) + rest.rfind(b"\n") + 1)

    def put(self, text: str) -> str:
        """Stores a text, unless it is stored already, and returns its reference.

        Known secrets are removed from it.

        Raises `StorageError` if the disk can't be written.
        """
        cleaned = clean(text)
        ref = reference(cleaned)
        if ref not in self._lines:
            self._write({"id": ref, "text": cleaned}, ref)

        return ref

    def put_entry(self, entry: dict[str, Any], ref: str) -> None:
        """Stores the entry of a text from another process, unless it is stored already."""
        if ref not in self._lines:
            self._write(entry, ref)

    def put_joined(self, parts: Sequence[str], separator: str) -> str:
        """Stores `separator.join(parts)` as its parts, and returns the reference of the whole."""
        if len(parts) == 1:
            return self.put(parts[0])

        whole = reference(separator.join(parts))
        if whole not in self._joined:
            self._joined[whole] = self._put_joined(parts, separator)

        return self._joined[whole]

    def _put_joined(self, parts: Sequence[str], separator: str) -> str:
        # Cleaned first, because the reference is the digest of the stored text.
        cleaned = list(map(clean, parts))
        ref = reference(separator.join(cleaned))
        if ref in self._lines:
            return ref

        refs = list(map(self.put, cleaned))
        if ref not in refs:  # else a part is the whole text, stored already
            self._write({"id": ref, "join": separator, "parts": refs}, ref)

        return ref

    def put_around(self, text: str, within: str) -> str:
        """Stores a text that contains another, such as a prompt around its context, in parts."""
        start = text.find(within)
        if not within or start < 0:
            return self.put(text)

        # Most of a prompt is its context, which is stored already.
        around = [text[:start], within, text[start + len(within) :]]
        return self.put_joined(list(filter(None, around)), "")

    def _write(self, entry: dict[str, Any], ref: str) -> None:
        line = json_line(entry, (",", ":")).encode()
        self._append(line, ref)
        if self._shared is not None:
            self._unsent[ref] = line
            # Sent in batches, because no answer depends on them.
            if len(self._unsent) >= TEXTS_AT_ONCE or time.monotonic() - self._sent_at > SEND_S:
                self._share()

    def _share(self) -> None:
        if self._shared is not None and self._unsent:
            self._shared.put(self._unsent)
            self._unsent, self._sent_at = {}, time.monotonic()

    def flush(self) -> None:
        """Returns when the shared texts are stored. Raises `StorageError` if one can't be."""
        self._share()
        if self._shared is not None:
            self._shared.flush()

    def _append(self, line: bytes, ref: str) -> None:
        assert self._file is not None, "the store is not open"
        before = append_whole(self._file, line, self.path)
        self._lines[ref] = (before, len(line))

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

        self.flush()
