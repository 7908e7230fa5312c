"""Rows and texts in the database."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from memeval.errors import StorageError
from memeval.store.postgres.database import Database
from memeval.store.postgres.leases import LeasedLocks

T = TypeVar("T")

_AT_ONCE = 1000
"""Maximum lines that one statement reads or writes."""


class _Outbox(Generic[T]):
    """Items that a database thread sends in order, so that the event loop does not wait."""

    def __init__(self, database: Database, send: Callable[[Sequence[T]], None]) -> None:
        self._database, self._send = database, send
        self._unsent: list[T] = []
        self._guard, self._sending = threading.Lock(), threading.Lock()
        self._is_due = False
        self._error: StorageError | None = None

    def put(self, items: Sequence[T]) -> None:
        """Queues items to be sent. Raises `StorageError` if earlier items could not be sent."""
        if self._error is not None:
            raise self._error

        with self._guard:
            self._unsent += items
            if self._is_due:
                return

            self._is_due = True

        self._database.post(self.flush)

    def flush(self) -> None:
        """Sends the remaining items. Raises `StorageError` if an item could not be sent."""
        with self._sending:
            with self._guard:
                items, self._unsent, self._is_due = self._unsent, [], False

            if items and self._error is None:
                try:
                    self._send(items)
                except StorageError as error:
                    self._error = error

        if self._error is not None:
            raise self._error


class PostgresRows:
    """The lines of one file of rows."""

    def __init__(self, database: Database, name: str, lock: LeasedLocks) -> None:
        self._database, self._name, self._lock = database, name, lock
        self._count = 0
        self._outbox = _Outbox(database, self.append_all)

    def acquire(self) -> bool:
        """Makes this the process that appends; returns False if another process holds that role."""
        return self._lock.acquire(0)

    def is_left_behind(self) -> bool:
        """Whether the process that appends has died, according to the last `acquire`."""
        return self._lock.has_lapsed(0)

    def read(self) -> bytes:
        """All lines, in the order of appending."""
        self.flush()
        rows = self._database.run(
            "SELECT number, line FROM memeval_rows WHERE name = :name ORDER BY number",
            {"name": self._name},
        )
        self._count = rows[-1][0] + 1 if rows else 0
        return b"".join(bytes(line) for _, line in rows)

    def append(self, line: bytes) -> None:
        """Queues a line to be appended. Raises `StorageError` if an earlier line failed."""
        self._outbox.put([line])

    def flush(self) -> None:
        """Waits until all lines are stored. Raises `StorageError` if a line could not be stored."""
        self._outbox.flush()

    def append_all(self, lines: Sequence[bytes]) -> None:
        """Appends lines once, after those read. Raises `StorageError` if another process does."""
        for start in range(0, len(lines), _AT_ONCE):
            some = lines[start : start + _AT_ONCE]
            # Lines that were stored before the connection broke are found, and count as stored.
            stored = self._database.run(
                "INSERT INTO memeval_rows AS r "
                "SELECT :name, :first + l.place, l.line "
                "FROM unnest(CAST(:lines AS bytea[])) WITH ORDINALITY AS l (line, place) "
                "ON CONFLICT (name, number) DO UPDATE SET line = r.line "
                "WHERE r.line = excluded.line RETURNING number",
                # ORDINALITY counts from 1.
                {"name": self._name, "first": self._count - 1, "lines": some},
            )
            if len(stored) < len(some):
                raise StorageError(
                    f"another process appends to {self._name} in the store {self._database.url}: "
                    "this process did not renew its lease in time"
                )

            self._count += len(some)

    def release(self) -> None:
        """Stores the remaining lines, and lets another process append."""
        try:
            self.flush()
        finally:
            self._lock.release(0)


class PostgresTexts:
    """The lines of one file of texts."""

    def __init__(self, database: Database, name: str) -> None:
        self._database, self._name = database, name
        self._outbox = _Outbox(database, self._put)

    def references(self) -> set[str]:
        rows = self._database.run(
            "SELECT reference FROM memeval_texts WHERE name = :name", {"name": self._name}
        )
        return {str(row[0]) for row in rows}

    def read(self, references: Sequence[str]) -> dict[str, bytes]:
        self.flush()
        lines: dict[str, bytes] = {}
        for start in range(0, len(references), _AT_ONCE):
            rows = self._database.run(
                "SELECT reference, line FROM memeval_texts WHERE name = :name "
                "AND reference = ANY(:references)",
                {"name": self._name, "references": list(references[start : start + _AT_ONCE])},
            )
            lines |= {str(reference): bytes(line) for reference, line in rows}

        return lines

    def put(self, lines: Mapping[str, bytes]) -> None:
        """Queues lines to be stored, except those whose reference already exists."""
        self._outbox.put(list(lines.items()))

    def flush(self) -> None:
        """Waits until all lines are stored. Raises `StorageError` if a line could not be stored."""
        self._outbox.flush()

    def _put(self, lines: Sequence[tuple[str, bytes]]) -> None:
        for start in range(0, len(lines), _AT_ONCE):
            some = lines[start : start + _AT_ONCE]
            self._database.run(
                "INSERT INTO memeval_texts SELECT :name, * FROM "
                "unnest(CAST(:references AS text[]), CAST(:lines AS bytea[])) "
                "ON CONFLICT (name, reference) DO NOTHING",
                {
                    "name": self._name,
                    "references": [reference for reference, _ in some],
                    "lines": [line for _, line in some],
                },
            )
