"""The registry entry of a data set, and a data set that is open for a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class FileInfo:
    """One file of a data set that is a folder."""

    name: str
    """Below the data set's folder."""
    url: str | None
    sha256: str | None
    size_bytes: int | None
    git_blob: str | None = None
    """git's own hash of the content, which pins a file of a repository whose sha256 is not known.
    """


@dataclass(frozen=True)
class Excerpt:
    """A registered part of a data set's file.

    It is used where the whole is not on the machine, and every report says so.
    """

    file: str
    """Path below the data folder."""
    sha256: str
    what: str
    """What part of the whole it is: `31 of the 500 questions, with their whole histories`."""


@dataclass(frozen=True)
class DatasetInfo:
    """The registry entry of a data set."""

    name: str
    title: str
    file: str
    """Path below the data folder, `<data set>/<file>`. A folder where `files` lists its content;
    empty for a generated set.
    """
    url: str | None
    """Where `data fetch` gets it. None for a set that ships or is generated, and for a folder: its
    `files` have addresses of their own.
    """
    sha256: str | None
    size_bytes: int | None
    licence: str
    citation: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """Expected counts by noun: cases, sessions, turns, questions."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Known edited copies by sha256, and what they are: a refusal names them so."""
    files: tuple[FileInfo, ...] = ()
    """What the folder holds, for a data set of several files."""
    excerpts: tuple[Excerpt, ...] = ()
    by_hand: str = ""
    """How to get a data set that can't be downloaded as it is."""
    git_blob: str | None = None
    """As that of a `FileInfo`."""

    @property
    def pin(self) -> str | None:
        """The registered hash of the file: its sha256, else its git blob; None without either."""
        return self.sha256 or self.git_blob


@dataclass(frozen=True)
class LoadedDataset:
    """A data set opened for a run."""

    info: DatasetInfo
    path: Path
    sha256: str
    """Of the file, or of the folder's files together. For a generated set, of everything that
    decides what is generated.
    """
    pinned: bool
    """False if the file is not the registered one and `allow_unpinned` admitted it; reports say
    so.
    """
    notes: tuple[str, ...] = ()
    """What the adapter repaired or left out: one line for each kind, with its count."""
    excerpt: bool = False
    """True if the file is a registered part of the whole: every table says so."""
    derived: bool = False
    """True if the rows were made from another data set's: every table says so."""
    name: str | None = None
    """The name under which runs are filed and compared, for a user's own file; None takes the
    registered name.
    """
