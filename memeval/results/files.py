"""Writes and checks result files: atomically, one row per line, with digests that reveal damage."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp
from typing import Any

from memeval.errors import StorageError, UserError
from memeval.process.leftovers import owner, sweep_beside

DUMP_SUFFIX = ".dump.jsonl"
MANIFEST = "memory.json"
"""Digests of a saved memory's other files; a folder without this file is not a saved memory."""
SEAL = "digest"
"""Name of the member that contains the digest of a sealed JSON object."""


def file_digest(path: Path) -> str:
    """sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digests(folder: Path, *, but: str = "") -> dict[str, str]:
    """sha256 of each file below a folder, by its path in the folder, except files named `but`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != but)
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in files}


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON without escapes for non-ASCII characters, unless it contains half of a surrogate pair,
    which UTF-8 can't encode.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Escapes make other scripts unreadable, so they are used only if necessary.
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)

    return text


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """`content` with its own digest, so that reading it detects damage and edits.

    The digest is not a signature: anyone who edits a file on purpose can write a new one.
    """
    return {**content, SEAL: _seal_of(content)}


def unsealed(content: Any) -> dict[str, Any]:
    """A sealed object as it was before.

    Raises `ValueError` for any other value, and for an object that was changed since.
    """
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")

    if content.get(SEAL) != _seal_of(content):
        raise ValueError("its digest is missing or wrong: it was edited, merged or damaged")

    kept = dict(content)
    del kept[SEAL]
    return kept


def _seal_of(content: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in content.items() if name != SEAL}
    # Sorted and without spaces, so that only the values count, not the layout of the file.
    return hashlib.sha256(
        json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


_ELSEWHERE_ENDS_LINES = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair."""


def json_line(row: Mapping[str, Any], separators: tuple[str, str] | None = None) -> str:
    """A row as one line of JSON that every reader sees as one line and can decode.

    Some readers also split lines at U+0085, U+2028 and U+2029, so these are escaped. Halves of
    surrogate pairs, which UTF-8 can't encode, become U+FFFD.
    """
    line = _encoder(separators).encode(row)
    if not line.isascii():
        line = without_halves(line.translate(_ELSEWHERE_ENDS_LINES))

    return line + "\n"


@cache
def _encoder(separators: tuple[str, str] | None) -> json.JSONEncoder:
    """Cached: `json.dumps` creates an encoder for each call that has custom settings."""
    return json.JSONEncoder(ensure_ascii=False, separators=separators)


def without_halves(text: str) -> str:
    """A string in which each half of a surrogate pair, which UTF-8 can't encode, becomes U+FFFD."""
    return HALF_CHARACTER.sub("\ufffd", text)


def memory_folders(prepared: Path, key: str) -> list[Path]:
    """The folders `<data set>/<system>-<key>` below `prepared` that contain the memories of a key.

    Usually one: a system with two names has one folder, under the name that was used first.
    """
    # Compared, not used as a pattern: a key in an edited run.json must not lead elsewhere.
    named = [path for path in prepared.glob("*/*") if path.name.endswith(f"-{key}")]
    return sorted(filter(Path.is_dir, named))


def dump_file(folder: Path) -> Path:
    """JSON-lines file of what a memory extracted or wrote, next to the memory's folder."""
    return folder.with_name(f"{folder.name}{DUMP_SUFFIX}")


@contextmanager
def writing(path: str | Path, done: str = "written") -> Iterator[None]:
    """Raises `StorageError` for an `OSError` in the block: `path` can't be `done` (`opened` …)."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path} can't be {done}: {error.strerror or error}") from error


@contextmanager
def reading(path: str | Path, *hints: str, end: str = "") -> Iterator[None]:
    """Raises `UserError` for an `OSError` in the block: `path` can't be read."""
    try:
        yield
    except OSError as error:
        reason = f"{path} can't be read: {error.strerror or error}{end}"
        raise UserError(reason, *hints) from error


def stamp_of(file: Path | int) -> tuple[int, ...]:
    """Values that change with every write of a file, given by its path or an open descriptor.

    Raises `UserError` if it does not exist.
    """
    with reading(str(file), end="."):
        status = os.fstat(file) if isinstance(file, int) else file.stat()

    return status.st_mtime_ns, status.st_size, status.st_ino


def append_whole(descriptor: int, line: bytes, path: Path) -> int:
    """Appends a whole line to an open file, or nothing of it; returns the offset of the line.

    Raises `StorageError` if the disk can't be written; `path` is for its message.
    """
    before = os.fstat(descriptor).st_size
    try:
        # At a limit, only the beginning is written; writing the rest fails with the reason.
        while line:
            line = line[os.write(descriptor, line) :]
    except OSError as error:
        # A partial line would corrupt the next appended row.
        os.ftruncate(descriptor, before)
        raise StorageError(f"{path} can't be written: {error.strerror or error}") from error

    return before


def temporary_folder(purpose: str) -> TemporaryDirectory[str]:
    """A temporary folder, which a later run removes if this process is killed.

    Raises `StorageError` if none can be made.
    """
    with writing("the temporary folder"):
        return TemporaryDirectory(prefix=f"memeval-{purpose}-{owner()}-")


def folder_beside(path: Path) -> TemporaryDirectory[str]:
    """A temporary folder beside `path`, as a rename only works within a file system. The
    first one there in a process removes those of killed processes.
    """
    sweep_beside(path.parent)
    return TemporaryDirectory(prefix=f".{owner()}.", suffix=".tmp", dir=path.parent)


def write_atomically(path: Path, text: str | Iterator[str]) -> None:
    """Writes a whole file or leaves the old one: temporary name, flush to disk, rename. The first
    write there in a process removes the temporary files of killed processes.

    A text larger than memory is given in pieces, which may be read from the old file.
    Only its owner may read it. A device or a pipe is written to: as root, a file would replace it.
    """
    if path.parent == Path("/dev") or (path.exists() and not path.is_file()):
        path.write_text("".join(text), encoding="utf-8")
        return

    sweep_beside(path.parent)
    descriptor, name = mkstemp(prefix=f".{owner()}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.writelines([text] if isinstance(text, str) else text)
            # If it were renamed before its content is on disk, it could be empty after a power cut.
            file.flush()
            os.fsync(file.fileno())

        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
