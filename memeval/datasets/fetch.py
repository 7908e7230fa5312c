"""Downloads data sets, and checks what is there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO, cast
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from memeval.datasets.contract import DatasetInfo
from memeval.datasets.locate import build, excerpt_of, locate, missing
from memeval.datasets.parts import part_info
from memeval.datasets.registry import ADAPTERS
from memeval.errors import UserError, WorldError
from memeval.records import EvalCase

Progress = Callable[[int, int | None], None]
"""Called with the bytes that are there and, where it is known, how many there will be."""

BLOCK = 1 << 18
TIMEOUT_S = 60.0


def fetch(info: DatasetInfo, folder: Path, progress: Progress | None = None) -> Path:
    """Downloads a data set to its place below `folder`, and returns that place. What is there already and right is left alone.

    The bytes go to `<file>.part`, which a later call continues; the file appears under its name only once its size and sha256 are right.
    Raises `UserError` where there is nothing to fetch or another file is in the way, `WorldError` where the download failed.
    """
    if info.url is None and any(file.url for file in info.files):
        for file in info.files:
            fetch(part_info(info, file), folder, progress)
        return folder / info.file
    if info.url is None and info.by_hand:
        raise UserError(f"data set '{info.name}' can't be fetched as it is.", info.by_hand)
    if info.url is None:
        how = "ships with memeval" if info.file else "is generated when it is read"
        raise UserError(f"data set '{info.name}' {how}: there is nothing to fetch.")
    target = folder / info.file
    if target.exists():
        if info.sha256 in (None, file_digest(target)):
            return target
        raise UserError(f"{target} is there already, and is not the registered file.", "move it away, then fetch again")
    part = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        continued = _download(info, info.url, part, progress)
        if not _right(info, part) and continued:
            part.unlink()  # what was continued may have been the beginning of another file
            _download(info, info.url, part, progress)
        if not _right(info, part):
            found = file_digest(part)
            part.unlink()
            known = f" ({info.variants[found]})" if found in info.variants else ""
            raise WorldError(f"{info.url} gave another file: its sha256 is {found}{known}, not {info.sha256}. Nothing was kept.")
        part.replace(target)
    except OSError as error:
        raise WorldError(f"data set '{info.name}' can't be written to {target.parent}: {error.strerror or error}") from error
    return target


def file_digest(path: Path) -> str:
    """sha256 of a file in hexadecimal, read in blocks."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found."""

    path: Path | None
    """None for a set that is generated."""
    sha256: str
    right: bool
    problems: tuple[str, ...]
    """What differs from what is registered, a line each."""
    excerpt: str = ""
    """What part of the whole it is, for a registered excerpt."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What was read: cases, sessions, turns, questions; nothing for a file that no adapter reads."""
    notes: tuple[str, ...] = ()
    """What the adapter repaired or left out, counted."""
    repairs: tuple[str, ...] = ()
    """Every repair by name."""


def verify(info: DatasetInfo, folder: Path) -> Verification:
    """Compares a data set with its registered hashes and counts, and reads all of it.

    Raises `UserError` where it is missing or does not parse.
    """
    path = locate(info, folder) if info.file else None
    if path and not path.exists():
        raise missing(info, path)
    digest = file_digest(path) if path and path.is_file() else ""
    part = excerpt_of(info, digest)
    problems = list(_unlike(info, path, digest)) if path and not part else []
    if info.name not in ADAPTERS:
        return Verification(path, digest, not problems, tuple(problems))
    dataset = build(info.name, folder, allow_unpinned=True)
    loaded = dataset.open()
    found = counts(dataset.read())
    if not part:
        expected = {noun: count for noun, count in info.counts.items() if noun in NOUNS}
        problems += [f"{found[noun]} {noun}, not {count}" for noun, count in expected.items() if found[noun] != count]
    notes = tuple(dict.fromkeys((*loaded.notes, *dataset.notes())))
    what = part.what if part else ""
    return Verification(path, digest or loaded.sha256, not problems, tuple(problems), what, found, notes, tuple(dataset.repairs()))


def _unlike(info: DatasetInfo, path: Path, digest: str) -> Iterator[str]:
    """How a file, or each file of a folder, differs from the registered one."""
    if digest and info.sha256 not in (None, digest):
        yield f"sha256 is {digest}, not {info.sha256}: {info.variants.get(digest, 'an unknown file')}"
    for part in info.files:
        there = path / part.name
        if not there.is_file():
            yield f"{part.name} is missing"
        elif (found := file_digest(there)) != part.sha256:
            yield f"{part.name}: sha256 is {found}, not {part.sha256}"


NOUNS = ("cases", "sessions", "turns", "questions")


def counts(cases: Iterable[EvalCase]) -> Counter[str]:
    """How many cases, sessions, turns and questions there are."""
    total: Counter[str] = Counter()
    for case in cases:
        turns = sum(len(session.turns) for session in case.sessions)
        total.update(cases=1, sessions=len(case.sessions), turns=turns, questions=len(case.questions))
    return total


def _download(info: DatasetInfo, url: str, part: Path, progress: Progress | None) -> bool:
    """Brings `part` to its full size; returns whether it continued an earlier beginning."""
    done = part.stat().st_size if part.exists() else 0
    if info.size_bytes is not None and done >= info.size_bytes:
        return True
    headers = {"User-Agent": "memeval", "Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    try:
        response = cast(HTTPResponse, urlopen(Request(url, headers=headers), timeout=TIMEOUT_S))
    except HTTPError as error:
        error.close()
        if error.code == 416 and done:  # nothing follows what is there: it is whole, or the beginning of another file
            return True
        raise WorldError(f"{url} answers {error.code} {error.reason}.") from error
    except (OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error or type(error).__name__
        raise WorldError(f"{url} can't be reached: {reason}. The file can also be put there by hand: {part.with_suffix('')}") from error
    with response:
        if response.status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            raise WorldError(f"{url} answers with another range than the one asked for; remove {part} and fetch again.")
        done = done if response.status == 206 else 0  # a server that ignores Range sends the whole file with status 200
        with part.open("ab" if done else "wb") as file:
            _copy(response, file, done, info, progress)
    return done > 0


def _copy(response: HTTPResponse, file: BinaryIO, done: int, info: DatasetInfo, progress: Progress | None) -> None:
    length = response.headers.get("Content-Length", "")
    total = done + int(length) if length.isdigit() else info.size_bytes
    while block := _read(response, info):
        file.write(block)
        done += len(block)
        if progress:
            progress(done, total)
    file.flush()
    os.fsync(file.fileno())
    if total is not None and done < total:
        raise WorldError(f"the download of {info.url} broke off at {done:,} of {total:,} bytes. The same command continues it.")


def _read(response: HTTPResponse, info: DatasetInfo) -> bytes:
    try:
        return response.read(BLOCK)
    except (OSError, HTTPException) as error:
        raise WorldError(f"the download of {info.url} broke off: {error or type(error).__name__}. It can be continued.") from error


def _right(info: DatasetInfo, part: Path) -> bool:
    return info.sha256 in (None, file_digest(part))
