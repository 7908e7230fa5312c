"""Results of a copy between a home and a database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from memeval.store.inventory import Kind


class Way(StrEnum):
    """Direction of a copy."""

    TO_DATABASE = "to"
    FROM_DATABASE = "from"


@dataclass(frozen=True)
class Copied:
    """Result of copying one file of rows or texts, one cache, or one memory."""

    kind: Kind
    name: str
    new: int
    """Rows, texts, entries or files that were, or would be, copied."""
    there: int
    """Those that the target had."""
    digest: str = ""
    """Digest of the copy, as it was read back; empty in a dry run, and if nothing was copied."""
    problem: str = ""
    """Why it was not copied, or does not compare; empty if it is sound."""


def digest_of(lines: Iterable[bytes]) -> str:
    """A short digest of lines, to compare two copies by eye."""
    sums = sha256()
    for line in lines:
        sums.update(line)

    return sums.hexdigest()[:16]
