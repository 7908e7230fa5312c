"""Lines in a store that several machines share; the files in `outputs/` are copies of them."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class SharedRows(Protocol):
    """Lines of a file of rows. Raises `StorageError` if the store can't be read or written."""

    def acquire(self) -> bool:
        """Makes this process the only one that may append; False if another process is."""

    def read(self) -> bytes:
        """All lines, in the order of appending."""

    def append(self, line: bytes) -> None:
        """Queues a line to be appended, without blocking the event loop.

        Raises `StorageError` if an earlier one could not be appended, for example because another
        process has taken over.
        """

    def flush(self) -> None:
        """Returns when all lines are stored."""

    def release(self) -> None:
        """Stores the remaining lines, and lets another process append."""


class SharedTexts(Protocol):
    """Lines of texts, by reference. Raises `StorageError` if the store can't be read or written."""

    def references(self) -> set[str]:
        """The references of all lines."""

    def read(self, references: Sequence[str]) -> dict[str, bytes]:
        """The lines with these references."""

    def put(self, lines: Mapping[str, bytes]) -> None:
        """Queues lines to be stored, except those whose reference is already stored."""

    def flush(self) -> None:
        """Returns when all lines are stored."""
