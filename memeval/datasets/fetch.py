"""Downloads data sets, and checks what is there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO, cast
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from memeval.datasets.contract import DatasetInfo
from memeval.datasets.locate import build, locate, missing
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
    if info.url is None:
        raise UserError(f"data set '{info.name}' ships with memeval: there is nothing to fetch.")
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

    path: Path
    sha256: str
    right: bool
    problems: tuple[str, ...]
    """What differs from what is registered, a line each."""


def verify(info: DatasetInfo, folder: Path) -> Verification:
    """Compares a data set's file with its registered hash and counts. Raises `UserError` where it is missing or does not parse."""
    path = locate(info, folder)
    if not path.is_file():
        raise missing(info, path)
    digest = file_digest(path)
    problems = []
    if info.sha256 not in (None, digest):
        problems.append(f"sha256 is {digest}, not {info.sha256}: {info.variants.get(digest, 'an unknown file')}")
    if info.name in ADAPTERS:
        found = counts(build(info.name, folder, allow_unpinned=True).cases())
        problems += [f"{found[noun]} {noun}, not {expected}" for noun, expected in info.counts.items() if found[noun] != expected]
    return Verification(path, digest, not problems, tuple(problems))


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
