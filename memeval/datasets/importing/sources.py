"""The files of an import: named directly, in a folder or in a zip archive; never unpacked to disk.

The sizes that an archive states are not trusted: bytes are counted while they are read.
"""

import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO

from msgspec import Struct

from memeval.datasets.importing.message import ImportLog
from memeval.errors import UserError
from memeval.results.files import reading
from memeval.text.shown import one_line

JSON = (".json", ".jsonl", ".ndjson")
ENDINGS = (*JSON, ".csv", ".tsv", ".xlsx", ".txt")
MAX_FILES = 100_000
MAX_BYTES = 1 << 29
"""Limit for one file, unpacked."""
MAX_TOTAL_BYTES = 1 << 31
MAX_RATIO = 500
"""Limit for the ratio of unpacked to packed bytes. Chats reach 20; only zip bombs reach 1,000."""
RATIO_FROM = 1 << 20
"""Files up to this size are harmless at any ratio."""
BLOCK = 1 << 18
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
)
"""Errors of `zipfile` for archives that are damaged, encrypted or compressed by another method."""
ZIP_MARK = b"PK\x03\x04"
EMPTY_ZIP = b"PK\x05\x06"
WORKBOOK = "xl/workbook.xml"


class SourceFile(Struct, frozen=True):
    path: Path
    """Path that the user named: of a file, an archive or a folder."""
    name: str
    """Path within the archive or folder, with slashes, else the file's name; never opened."""
    shown_path: Path
    """The path as messages show it."""
    read: Callable[[], bytes]

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def folder(self) -> str:
        """The name of the innermost folder; empty if there is none."""
        return PurePosixPath(self.name).parent.name

    @property
    def ending(self) -> str:
        return PurePosixPath(self.name).suffix.lower()


@contextmanager
def open_sources(paths: Sequence[Path], log: ImportLog) -> Iterator[list[SourceFile]]:
    """The files that may contain messages, in the order of their names; others are counted.

    Raises `UserError` for files that can't be read, and for an archive that exceeds a limit.
    """
    with ExitStack() as stack:
        budget = _Budget()
        files: list[SourceFile] = []
        for path in paths:
            files += _files(path, budget, stack)

        known = [file for file in files if file.ending in ENDINGS or len(files) == 1]
        log.leave_out("files of other kinds", len(files) - len(known))
        yield known


def check_archive(archive: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    """An archive's files. Raises `UserError` if it is encrypted or states sizes over a limit."""
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > MAX_FILES:
        raise UserError(f"{path} contains {len(entries):,} files; at most {MAX_FILES:,} are read.")

    in_all = 0
    for entry in entries:
        in_all += entry.file_size
        if entry.flag_bits & 1:
            raise UserError(f"{path} is encrypted.", "unpack it, and name the folder")

        too_dense = entry.file_size > MAX_RATIO * max(entry.compress_size, 1)
        if entry.file_size > RATIO_FROM and too_dense:
            raise _too_large(path, entry.filename, f"more than {MAX_RATIO} times its size")

    if in_all > MAX_TOTAL_BYTES:
        raise _too_large(path, "all its files together", f"more than {MAX_TOTAL_BYTES:,} bytes")

    return entries


class _Budget(Struct):
    remaining: int = MAX_TOTAL_BYTES

    def read(self, file: IO[bytes], path: Path, name: str, packed: int) -> bytes:
        """The whole file, if it stays within the bounds."""
        most = min(self.remaining, MAX_BYTES, max(MAX_RATIO * packed, RATIO_FROM))
        blocks, size = [], 0
        while block := file.read(BLOCK):
            size += len(block)
            if size > most:
                raise _too_large(path, name, f"more than {most:,} bytes")

            blocks.append(block)

        self.remaining -= size
        return b"".join(blocks)


def _too_large(path: Path, name: str, how: str) -> UserError:
    return UserError(
        f"{path}: {one_line(name)} would unpack to {how}, so it was not read.",
        "if you trust it:  unpack it, and name the files with the conversations",
    )


def _files(path: Path, budget: _Budget, stack: ExitStack) -> list[SourceFile]:
    if path.is_dir():
        return _folder_files(path, budget)

    with reading(path, end="."), path.open("rb") as file:
        mark = file.read(4)

    if mark in (ZIP_MARK, EMPTY_ZIP):
        return _archive_files(path, budget, stack)

    return [_single_file(path, budget)]


def _single_file(path: Path, budget: _Budget) -> SourceFile:
    read = partial(_read_file, path, budget)
    return SourceFile(path=path, name=path.name, shown_path=path, read=read)


def _folder_files(folder: Path, budget: _Budget) -> list[SourceFile]:
    files = []
    # Of `.` and `..`, only the resolved path has a name.
    folder_name = folder.resolve().name
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_symlink() or not path.is_file() or _is_hidden(name.as_posix()):
            continue

        # The folder's own name distinguishes the logs of several folders.
        named = f"{folder_name}/{name.as_posix()}"
        shown = folder / one_line(name.as_posix())
        read = partial(_read_file, path, budget)
        files.append(SourceFile(path=folder, name=named, shown_path=shown, read=read))
        if len(files) > MAX_FILES:
            raise UserError(f"{folder} contains more than {MAX_FILES:,} files.")

    if not files:
        raise UserError(f"{folder} contains no files.")

    return files


def _archive_files(path: Path, budget: _Budget, stack: ExitStack) -> list[SourceFile]:
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
    except UNREADABLE as error:
        raise UserError(
            f"{path} is a zip archive that can't be read: {one_line(error)} (is it cut off?).",
            "get the export again",
        ) from error

    # An Excel file is also an archive.
    if WORKBOOK in archive.namelist():
        return [_single_file(path, budget)]

    files = []
    for entry in sorted(check_archive(archive, path), key=lambda entry: entry.filename):
        # Archives made on Windows may have backslashes in names.
        name = entry.filename.replace("\\", "/")
        if not _is_hidden(name):
            read = partial(_read_entry, archive, entry, path, budget)
            shown = path / one_line(name)
            files.append(SourceFile(path=path, name=name, shown_path=shown, read=read))

    if not files:
        raise UserError(f"{path} contains no files.")

    return files


def _is_hidden(name: str) -> bool:
    """Whether a file is hidden, or was added by an operating system."""
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in name.split("/"))


def _read_file(path: Path, budget: _Budget) -> bytes:
    with reading(path, end="."), path.open("rb") as file:
        return budget.read(file, path, path.name, packed=MAX_BYTES)


def _read_entry(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, budget: _Budget
) -> bytes:
    try:
        with archive.open(entry) as file:
            return budget.read(file, path, entry.filename, packed=entry.compress_size)
    except UNREADABLE as error:
        raise UserError(
            f"{path}: {one_line(entry.filename)} is damaged: {one_line(error)}.",
            "get the export again",
        ) from error


def is_workbook(content: bytes) -> bool:
    """Whether content is an Excel file, which is also a zip archive."""
    if not content.startswith(ZIP_MARK):
        return False

    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            return WORKBOOK in archive.namelist()
    except (zipfile.BadZipFile, ValueError):
        return False
