"""A user's file that is edited in place: atomically, and in its existing layout."""

import fcntl
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from msgspec import Struct, field

from memeval.datasets.json.reader import META, Layout, OwnReader
from memeval.errors import UserError
from memeval.records import EvalCase
from memeval.results.files import as_json, json_line, reading, stamp_of, write_atomically
from memeval.text.shown import one_line

DROPPED = "dropped_drafts"
"""Key of a file's `meta` for its dropped drafts."""


class OwnDocument(Struct):
    """The cases of a file; `replace` changes one, and `write` saves all."""

    path: Path
    layout: Layout
    header: dict[str, Any]
    cases: list[dict[str, Any]]
    """The cases as written."""
    checked: list[EvalCase]
    """The cases as read, with all their questions, regardless of status."""
    stamp: tuple[int, ...]
    """Stamp of the file as last read or written; a different one means a change by someone else."""
    _texts: dict[int, str] = field(default_factory=dict)
    """JSON of the cases by position: a decision changes only one case of a large file."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Checks and reads a file. Raises `UserError` with every mistake."""
        path = path.resolve()
        stamp = stamp_of(path)
        reader = OwnReader(path)
        cases, checked = [], []
        for written, case in reader.pairs():
            cases.append(written)
            if case is not None:
                checked.append(case)

        reader.mistakes.refuse()
        return cls(path, reader.layout, reader.header, cases, checked, stamp)

    def write(self) -> None:
        """Replaces the file. Raises `UserError` if it can't be written; the old one then stays."""
        try:
            mode = self.path.stat().st_mode
            write_atomically(self.path, self._text())
            self.path.chmod(mode)
        except OSError as error:
            # The file lacks this change: it is read again before the next one.
            self.stamp = ()
            raise UserError(f"{self.path} can't be written: {error.strerror or error}.") from error

        self.stamp = stamp_of(self.path)

    def replace(self, number: int, case: dict[str, Any]) -> None:
        """Replaces the case at a position.

        Raises `UserError` with its mistakes, and then changes nothing.
        """
        reader = OwnReader(self.path)
        checked = reader.case(f"case {number + 1}", case)
        reader.mistakes.refuse()
        assert checked is not None, "a case without a mistake is read"
        self.cases[number], self.checked[number] = case, checked
        self._texts.pop(number, None)

    def note_dropped(self, counts: Mapping[str, int]) -> None:
        """Notes the dropped drafts in the file's header; does nothing for a file without one."""
        if self.layout is Layout.OBJECT or self.header:
            meta = self.header.get(META)
            if not isinstance(meta, dict):
                meta = {}

            self.header[META] = {**meta, DROPPED: dict(counts)}

    def _text(self) -> str:
        texts = list(map(self._case_text, range(len(self.cases))))
        if self.layout is Layout.LINES:
            header = json_line(self.header) if self.header else ""
            return "".join([header, *texts])
        if self.layout is Layout.CASE:
            return f"{texts[0]}\n"
        if self.layout is Layout.LIST:
            return "[\n " + ",\n ".join(texts) + "\n]\n"

        opening = as_json({**self.header, "cases": []}, indent=1).removesuffix("[]\n}")
        return f"{opening}[\n  " + ",\n  ".join(texts) + "\n ]\n}\n"

    def _case_text(self, number: int) -> str:
        """A case as `json.dumps(…, indent=1)` of the whole file writes it."""
        if number not in self._texts:
            case = self.cases[number]
            if self.layout is Layout.LINES:
                text = json_line(case)
            else:
                depth = {Layout.OBJECT: 2, Layout.LIST: 1}.get(self.layout, 0)
                text = as_json(case, indent=1).replace("\n", "\n" + " " * depth)

            self._texts[number] = text

        return self._texts[number]


def dropped_counts(header: Mapping[str, Any]) -> Counter[str]:
    """Numbers of dropped proposals of drafted questions, by reason, as noted in a file."""
    counts: Counter[str] = Counter()
    meta = header.get(META)
    noted = meta.get(DROPPED) if isinstance(meta, dict) else None
    if isinstance(noted, dict):
        for why, count in noted.items():
            if type(count) is int and count > 0:
                counts[one_line(why, 100)] = count

    return counts


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Waits until no other process changes a file, and makes others wait.

    Raises `UserError` if the file can't be opened or locked.
    """
    # NFS locks a file only if it is open for writing.
    flags = os.O_CLOEXEC | (os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY)
    while True:
        with reading(path, end="."):
            descriptor = os.open(path, flags)

        try:
            with reading(path, end="."):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # While this process waited, a new file may have taken the name.
                is_current = os.fstat(descriptor).st_ino == path.stat().st_ino

            if is_current:
                yield
                return
        finally:
            os.close(descriptor)
