"""Lists what a home contains: rows, texts, run folders, memories, caches and leftovers."""

import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from memeval.llm.cache_file import companions
from memeval.process.leftovers import SUFFIX, is_leftover
from memeval.results.files import DUMP_SUFFIX, dump_file
from memeval.results.texts import TEXTS_SUFFIX

_ROWS_SUFFIX = ".jsonl"
_DAMAGED = ".damaged-"


class StoredKind(StrEnum):
    """Kinds of stored items."""

    ANSWERS = "answers"
    TEXTS = "texts"
    VERDICTS = "verdicts"
    RUNS = "runs"
    MEMORIES = "memories"
    CACHES = "caches"
    LEFTOVERS = "leftovers"


class Home(Struct, frozen=True):
    """The folders of a home that contain stored data."""

    outputs: Path
    prepared: Path
    cache: Path


class StoredItem(Struct, frozen=True):
    """A stored item, which is removed as a whole."""

    kind: StoredKind
    paths: tuple[Path, ...]
    """Its files and folders; the first one names it."""
    key: str
    """Key of its stage; empty if no key belongs to it."""
    size: int
    """Bytes of all its files."""
    changed: float
    """Time of the newest change of its files, in seconds since 1970."""
    locks: tuple[Path, ...] = ()
    """Lock files that a process holds while it uses the item."""


def list_items(home: Home) -> list[StoredItem]:
    """Everything in a home, by kind and name."""
    return [
        *_rows(home.outputs / "answers", StoredKind.ANSWERS),
        *_texts(home.outputs / "answers"),
        *_rows(home.outputs / "verdicts", StoredKind.VERDICTS),
        *_runs(home.outputs / "runs"),
        *_memories(home.prepared),
        *_caches(home.cache),
        *_leftovers(home),
    ]


def row_locks(home: Home) -> list[Path]:
    """The lock files of the rows. A running cell holds some of them."""
    paths = _entries_of(home.outputs / "answers") + _entries_of(home.outputs / "verdicts")
    return [path for path in paths if path.name.endswith(f"{_ROWS_SUFFIX}.lock")]


def _rows(folder: Path, kind: StoredKind) -> Iterator[StoredItem]:
    for path in _entries_of(folder):
        is_rows = path.name.endswith(_ROWS_SUFFIX) and not path.name.endswith(TEXTS_SUFFIX)
        if is_rows and not path.name.startswith("."):
            yield _item(kind, [path], key=path.stem, locks=[_lock_of(path)])


def _texts(folder: Path) -> Iterator[StoredItem]:
    for path in _entries_of(folder):
        if path.name.endswith(TEXTS_SUFFIX) and not path.name.startswith("."):
            key = path.name.removesuffix(TEXTS_SUFFIX)
            # The process that writes the answers also writes their texts.
            lock = _lock_of(folder / f"{key}{_ROWS_SUFFIX}")
            yield _item(StoredKind.TEXTS, [path], key=key, locks=[lock])


def _runs(folder: Path) -> Iterator[StoredItem]:
    for path in _entries_of(folder):
        if path.is_dir() and not path.name.startswith("."):
            yield _item(StoredKind.RUNS, [path], key=path.name)


def _memories(prepared: Path) -> Iterator[StoredItem]:
    for dataset in _entries_of(prepared):
        for folder in _entries_of(dataset):
            # `<system>-<key>`: the name of a system may itself contain hyphens.
            key = folder.name.rpartition("-")[2]
            yield from _memories_of_key(folder, key)


def _memories_of_key(folder: Path, key: str) -> Iterator[StoredItem]:
    # A memory that can't be saved leaves only its dump.
    memories = set()
    for path in _entries_of(folder):
        if path.name.startswith("."):
            continue
        if path.name.endswith(DUMP_SUFFIX):
            memories.add(path.with_name(path.name.removesuffix(DUMP_SUFFIX)))
        elif path.is_dir():
            memories.add(path)

    for memory in sorted(memories):
        yield _item(
            StoredKind.MEMORIES, [memory, dump_file(memory)], key=key, locks=[_lock_of(memory)]
        )


def _caches(folder: Path) -> Iterator[StoredItem]:
    for path in _entries_of(folder):
        if path.name.endswith(".sqlite"):
            yield _item(StoredKind.CACHES, [path, *companions(path)], locks=[_lock_of(path)])


def _leftovers(home: Home) -> Iterator[StoredItem]:
    """Remains of killed processes, and damaged caches that were moved aside."""
    places = (
        *home.outputs.glob(f".*{SUFFIX}"),
        *home.outputs.glob(f"*/.*{SUFFIX}"),
        *home.outputs.glob(f"*/*/.*{SUFFIX}"),
        *home.prepared.glob(f"*/.*{SUFFIX}"),
        *home.prepared.glob(f"*/*/.*{SUFFIX}"),
        *home.cache.glob(f".*{SUFFIX}"),
        *home.cache.glob(f"*/.*{SUFFIX}"),
    )
    for path in sorted(places):
        if is_leftover(path):
            yield _item(StoredKind.LEFTOVERS, [path])

    for path in _entries_of(home.cache):
        name, mark, _ = path.name.partition(_DAMAGED)
        if mark:
            yield _item(StoredKind.LEFTOVERS, [path], locks=[home.cache / f"{name}.lock"])


def _item(
    kind: StoredKind, paths: Iterable[Path], key: str = "", locks: Iterable[Path] = ()
) -> StoredItem:
    present = tuple(path for path in paths if path.exists() or path.is_symlink())
    size, changed = _measure(present)
    return StoredItem(
        kind=kind, paths=present, key=key, size=size, changed=changed, locks=tuple(locks)
    )


def _measure(paths: Iterable[Path]) -> tuple[int, float]:
    """Bytes of all files, and the time of the newest change. A link is not followed."""
    size, changed = 0, 0.0
    for path in _files(paths):
        try:
            stat = path.lstat()
        except OSError:
            continue  # removed by its owner meanwhile

        size += stat.st_size
        changed = max(changed, stat.st_mtime)

    return size, changed


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield path
        if path.is_dir() and not path.is_symlink():
            for folder, _, names in os.walk(path):
                yield from (Path(folder, name) for name in names)


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _entries_of(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


class CopyDirection(StrEnum):
    TO_DATABASE = "to"
    FROM_DATABASE = "from"


class Copied(Struct, frozen=True):
    """Result of copying one file of rows or texts, one cache, or one memory."""

    kind: StoredKind
    name: str
    new: int
    """Rows, texts, entries or files that were, or would be, copied."""
    present: int
    """Those that the target already had."""
    digest: str = ""
    """Digest of the copy, as it was read back; empty in a dry run, and if nothing was copied."""
    problem: str = ""
    """The reason why it was not copied or can't be read back; empty if it is intact."""


def digest_of(lines: Iterable[bytes]) -> str:
    """A short digest of lines, to compare two copies by eye."""
    sums = sha256()
    for line in lines:
        sums.update(line)

    return sums.hexdigest()[:16]
