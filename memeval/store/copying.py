"""Copies items between home and database: adds items without replacing any, and compares."""

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from filelock import Timeout

from memeval.errors import StorageError
from memeval.llm.cache_contract import CachedEntry, ReplyCache
from memeval.llm.cache_file import checksum
from memeval.results.files import append_whole
from memeval.results.private import make_folder, open_private
from memeval.results.store import sound_lines
from memeval.results.texts import TEXTS_SUFFIX, Texts, TextStore
from memeval.store.cleaning import hold_locks
from memeval.store.contract import FileStore
from memeval.store.inventory import Copied, CopyDirection, Home, StoredItem, StoredKind, digest_of
from memeval.store.postgres.lines import PostgresRows
from memeval.store.postgres.store import PostgresStore
from memeval.text.typed import json_or_none

LEFT_WAIT_S = 0.5
"""Seconds between two attempts to take over rows whose process was killed."""


class CopiedLines(Protocol):
    """The lines of one file of rows, in the home or in the database."""

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
        """Appends lines after the last complete one."""
        # A torn line at the end is cut off, as in a run: it would corrupt the next one.
        whole = len(self.read())
        with open(self._path, "ab", buffering=0, opener=open_private) as file:
            file.truncate(whole)
            append_whole(file.fileno(), b"".join(lines), self._path)


class HomeTexts:
    def __init__(self, path: Path) -> None:
        self._path = path

    def references(self) -> set[str]:
        texts = Texts(self._path)
        return set(texts.references()) - set(texts.find_damaged())

    def read(self, references: Sequence[str]) -> dict[str, bytes]:
        texts = Texts(self._path)
        known = set(texts.references())
        return {ref: texts.line(ref) for ref in references if ref in known}

    def put(self, lines: dict[str, bytes]) -> None:
        """Stores lines, except those whose reference already exists."""
        make_folder(self._path.parent)
        with TextStore(self._path) as store:
            for ref, line in lines.items():
                store.put_entry(json.loads(line), ref)


ENTRIES_AT_ONCE = 500
"""Entries of a cache that are in memory at the same time."""
_ROWS_NAME = re.compile(r"(answers|verdicts)/[0-9a-f]{8,64}\.jsonl")
_TEXTS_NAME = re.compile(r"answers/[0-9a-f]{8,64}\.texts\.jsonl")
_CACHE_NAME = re.compile(r"[a-z_]{1,40}")


class Copying:
    """One copy between a home and a database."""

    def __init__(
        self,
        home: Home,
        database: PostgresStore,
        direction: CopyDirection,
        *,
        do_it: bool,
        items: Sequence[StoredItem],
    ) -> None:
        """`items` are those of the home. Without `do_it` nothing is changed."""
        self._home, self._database, self._do_it = home, database, do_it
        self._to_database = direction is CopyDirection.TO_DATABASE
        self._files = FileStore(home.cache)
        self._items = items

    def run(self) -> Iterator[Copied]:
        """Copies rows, texts and caches. Raises `StorageError` if either side refuses."""
        for name in self._line_files():
            yield self._copy_file(name, self._home.outputs / name)

        for name in self._caches():
            yield self._copy_cache(name)

    def _line_files(self) -> list[str]:
        """Names of the files to copy, such as `answers/<key>.jsonl`."""
        if not self._to_database:
            names: Iterable[str] = self._database.names()
        else:
            kinds = (StoredKind.ANSWERS, StoredKind.TEXTS, StoredKind.VERDICTS)
            paths = [item.paths[0] for item in self._items if item.kind in kinds]
            names = [f"{path.parent.name}/{path.name}" for path in paths]

        return [name for name in names if _ROWS_NAME.fullmatch(name) or _TEXTS_NAME.fullmatch(name)]

    def _caches(self) -> list[str]:
        if not self._to_database:
            names: Iterable[str] = self._database.caches()
        else:
            names = [item.paths[0].stem for item in self._items if item.kind is StoredKind.CACHES]

        return list(filter(_CACHE_NAME.fullmatch, names))

    def _copy_file(self, name: str, path: Path) -> Copied:
        kind = StoredKind(path.parent.name)
        if name.endswith(TEXTS_SUFFIX):
            kind = StoredKind.TEXTS

        # The process that writes the answers writes their texts: one lock is enough for both.
        guarded = path.with_name(path.name.replace(TEXTS_SUFFIX, ".jsonl"))
        rows = self._database.rows(guarded)
        try:
            with _hold(guarded, rows, writes=self._do_it):
                if kind is StoredKind.TEXTS:
                    return self._copy_texts(name, path)

                return self._copy_rows(kind, name, path, rows)
        except _InUseError:
            return Copied(kind, name, new=0, present=0, problem="in use by a running process")

    def _copy_rows(self, kind: StoredKind, name: str, path: Path, rows: PostgresRows) -> Copied:
        in_home: CopiedLines = HomeLines(path)
        source, target = (in_home, rows) if self._to_database else (rows, in_home)
        before = sound_lines(source.read())
        new, present = missing_lines(before, target.read())
        if not new or not self._do_it:
            return Copied(kind, name, new=len(new), present=present)

        target.append_all(new)
        after = set(target.read().splitlines(keepends=True))
        problem = "" if after.issuperset(new) else "the copy can't be read back"
        return Copied(
            kind, name, new=len(new), present=present, digest=digest_of(new), problem=problem
        )

    def _copy_texts(self, name: str, path: Path) -> Copied:
        in_database, in_home = self._database.texts(path), HomeTexts(path)
        source, target = (in_home, in_database) if self._to_database else (in_database, in_home)
        known, target_refs = source.references(), target.references()
        new = sorted(known - target_refs)
        already = len(known) - len(new)
        if not new or not self._do_it:
            return Copied(StoredKind.TEXTS, name, new=len(new), present=already)

        lines = _readable(source.read(new))
        target.put(lines)
        problem = "" if target.read(list(lines)) == lines else "the copy can't be read back"
        digest = digest_of(lines[ref] for ref in sorted(lines))
        return Copied(
            StoredKind.TEXTS, name, new=len(lines), present=already, digest=digest, problem=problem
        )

    def _copy_cache(self, name: str) -> Copied:
        path = self._home.cache / f"{name}.sqlite"
        # Opening a cache creates its file, which a dry run must not do.
        if not self._do_it and not path.exists():
            count = len(self._database.cache(name, None).keys())
            return Copied(StoredKind.CACHES, name, new=count, present=0)

        in_home, in_database = self._files.cache(name, None), self._database.cache(name, None)
        source, target = (in_home, in_database) if self._to_database else (in_database, in_home)
        try:
            return self._copy_entries(name, source, target)
        finally:
            in_home.close()

    def _copy_entries(self, name: str, source: ReplyCache, target: ReplyCache) -> Copied:
        # Keys of 64 characters: a million of them takes less room than one model.
        known = source.keys()
        new = sorted(known - target.keys())
        already = len(known) - len(new)
        if not new or not self._do_it:
            return Copied(StoredKind.CACHES, name, new=len(new), present=already)

        sums = sha256()
        problem = ""
        for start in range(0, len(new), ENTRIES_AT_ONCE):
            # Damaged entries are dropped when they are read; later runs request them again.
            entries = source.get_all(new[start : start + ENTRIES_AT_ONCE])
            _put(entries, target)
            if target.get_all(entries) != entries:
                problem = "the copy can't be read back"

            for key in sorted(entries):
                entry = entries[key]
                sums.update(f"{checksum(key, entry.value, entry.origin, entry.tokens)} ".encode())

        digest = sums.hexdigest()[:16]
        return Copied(
            StoredKind.CACHES, name, new=len(new), present=already, digest=digest, problem=problem
        )


def missing_lines(source: Sequence[bytes], target: bytes) -> tuple[list[bytes], int]:
    """The lines of a source that a target lacks, and the number that it already has.

    If the target is the beginning of the source, these are the rest. Otherwise the target keeps its
    own rows: the last row of a question counts, so an added row could replace one of them.
    """
    kept = target.splitlines(keepends=True)
    if list(source[: len(kept)]) == kept:
        return list(source[len(kept) :]), len(kept)

    known = set(kept)
    ids = set(map(_id_of, kept))
    new = [line for line in source if line not in known and _id_of(line) not in ids]
    return new, len(source) - len(new)


def _id_of(line: bytes) -> str | None:
    content = json_or_none(line)
    # The header has no id, and all files of a key have the same header.
    return str(content.get("id")) if isinstance(content, dict) else None


def _readable(lines: dict[str, bytes]) -> dict[str, bytes]:
    """The lines that can be read as the texts of their references."""
    return {ref: line for ref, line in lines.items() if _id_of(line) == ref and line[-1:] == b"\n"}


def _put(entries: dict[str, CachedEntry], target: ReplyCache) -> None:
    by_origin: dict[str, dict[str, CachedEntry]] = {}
    for key, entry in entries.items():
        by_origin.setdefault(entry.origin, {})[key] = entry

    for origin, some in by_origin.items():
        values, tokens = {}, {}
        for key, entry in some.items():
            values[key] = entry.value
            if entry.tokens is not None:
                tokens[key] = entry.tokens

        target.put_all(values, origin, tokens)


class _InUseError(Exception):
    """A running process appends to the rows."""


@contextmanager
def _hold(path: Path, rows: PostgresRows, *, writes: bool) -> Iterator[None]:
    """Locks a file's rows in both places for writing. Raises `_InUseError` if they are locked."""
    if not writes:
        yield
        return

    try:
        make_folder(path.parent)
        with hold_locks([Path(f"{path}.lock")]):
            while not rows.acquire():
                if not rows.is_left_behind():
                    raise _InUseError

                # A killed process left its lock, which can soon be taken over.
                time.sleep(LEFT_WAIT_S)

            try:
                yield
            finally:
                rows.release()
    except Timeout as busy:
        raise _InUseError from busy
    except OSError as error:
        raise StorageError(f"{path} can't be written: {error.strerror or error}") from error
