"""The registry entry of a data set, and a data set that is open for a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from memeval.text.shipped import with_locations


@dataclass(frozen=True)
class FileInfo:
    """One file of a data set that is a folder."""

    name: str
    """Path below the data set's folder."""
    url: str | None = None
    sha256: str | None = None
    size_bytes: int | None = None
    git_blob: str | None = None
    """git's own hash of the content, which pins a file of a repository whose sha256 is not known.
    """


@dataclass(frozen=True)
class Excerpt:
    """A registered part of a data set's file.

    It is used if the whole file is not on the machine, and every report says so.
    """

    file: str
    """Path below the data folder."""
    sha256: str
    what: str
    """Description of the part: `31 of the 500 questions, with their whole histories`."""


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """The registry entry of a data set."""

    name: str
    title: str
    file: str
    """Path below the data folder, `<data set>/<file>`. A folder if `files` lists its content;
    empty for a generated set.
    """
    url: str | None = None
    """URL for `data fetch`. None for a built-in or generated set, and for a folder, whose `files`
    have their own URLs.
    """
    sha256: str | None = None
    size_bytes: int | None = None
    licence: str
    redistribution: bool = False
    """Whether anyone may redistribute its texts for any purpose, as we understand the licence."""
    citation: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """Expected counts by noun: cases, sessions, turns, questions."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Known edited copies by sha256, with the description that the error message gives."""
    files: tuple[FileInfo, ...] = ()
    """Files of the folder, for a data set of several files."""
    excerpts: tuple[Excerpt, ...] = ()
    by_hand: str = ""
    """How to get a data set that can't be downloaded directly."""
    git_blob: str | None = None
    """See `FileInfo.git_blob`."""

    @property
    def how_to_get(self) -> str:
        """`by_hand`, with the locations of the pages and files that it names."""
        return with_locations(self.by_hand)

    @property
    def pin(self) -> str | None:
        """The registered hash of the file: its sha256, else its git blob; None without either."""
        return self.sha256 or self.git_blob

    def part(self, file: FileInfo) -> Self:
        """The entry of one file of the folder; name, licence and citation are the whole's."""
        return replace(
            self,
            file=f"{self.file}/{file.name}",
            url=file.url,
            sha256=file.sha256,
            git_blob=file.git_blob,
            size_bytes=file.size_bytes,
            counts={},
            variants={},
            files=(),
            excerpts=(),
        )

    def part_named(self, name: str) -> Self:
        """The entry of the file of this name, without hashes if it is not registered."""
        if self.file.rpartition("/")[2] == name:
            return self  # the data set is this file

        for file in self.files:
            if file.name == name:
                return self.part(file)

        return self.part(FileInfo(name))


@dataclass(frozen=True)
class LoadedDataset:
    """A data set opened for a run."""

    info: DatasetInfo
    path: Path
    sha256: str
    """Of the file, or of the folder's files together. For a generated set, of everything that
    influences its generation.
    """
    pinned: bool
    """False if the file is not the registered one, but was admitted by `allow_unpinned`; reports
    say so.
    """
    notes: tuple[str, ...] = ()
    """Repairs and omissions of the adapter: one line for each kind, with its count."""
    excerpt: bool = False
    """True if the file is a registered part of the whole: every table says so."""
    derived: bool = False
    """True if the rows were made from another data set's: every table says so."""
    version: str | None = None
    """Version of a user's own frozen data set."""
    drafted: bool = False
    """True if some questions were written by a model and not reviewed: every table says so."""
    file_sha256: str | None = None
    """sha256 of the file alone, if `sha256` covers more than that; None otherwise."""
    name: str | None = None
    """The name under which runs are filed and compared, for a user's own file; None: the registered
    name.
    """
