"""Lines that several machines share, of which the files in `outputs/` are copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class SharedRows(Protocol):
    """The lines of one file of rows. Its methods raise `StorageError` if the store refuses."""

    def hold(self) -> bool:
        """Makes this process the one that appends; False if another one is."""

    def read(self) -> bytes:
        """All lines, in the order of appending."""

    def append(self, line: bytes) -> None:
        """Has a line appended, without holding up the event loop.

        Raises `StorageError` if an earlier one could not be, for example because another process
        has become the one that appends.
        """

    def flush(self) -> None:
        """Returns when all lines are stored."""

    def give(self) -> None:
        """Stores the rest, and lets another process append."""


class SharedTexts(Protocol):
    """The lines of one file of texts, by reference. Its methods raise `StorageError`."""

    def references(self) -> set[str]:
        """The references of all lines."""

    def read(self, references: Sequence[str]) -> dict[str, bytes]:
        """The lines of some references."""

    def put(self, lines: Mapping[str, bytes]) -> None:
        """Has lines stored, each unless its reference is there already."""

    def flush(self) -> None:
        """Returns when all lines are stored."""
