"""Rows and texts in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memeval.errors import StorageError
from memeval.llm.locks import Locks
from memeval.store.postgres.database import Database

_AT_ONCE = 1000
"""Lines that one statement reads or writes."""


class PostgresRows:
    """The lines of one file of rows."""

    def __init__(self, database: Database, name: str, lock: Locks) -> None:
        self._database, self._name, self._lock = database, name, lock
        self._count = 0

    def hold(self) -> bool:
        """Makes this process the one that appends; False where another one is."""
        return self._lock.take(0)

    def read(self) -> bytes:
        """All lines, in the order in which they were appended."""
        rows = self._database.run(
            "SELECT number, line FROM memeval_rows WHERE name = :name ORDER BY number",
            {"name": self._name},
        )
        self._count = rows[-1][0] + 1 if rows else 0
        return b"".join(bytes(line) for _, line in rows)

    def append(self, line: bytes) -> None:
        """Appends a line.

        Raises `StorageError` where another process has become the one that appends.
        """
        # A line that was stored before the connection broke is found, and taken for stored.
        stored = self._database.run(
            "INSERT INTO memeval_rows AS r VALUES (:name, :number, :line) "
            "ON CONFLICT (name, number) DO UPDATE SET line = r.line WHERE r.line = excluded.line "
            "RETURNING number",
            {"name": self._name, "number": self._count, "line": line},
        )
        if not stored:
            raise StorageError(
                f"another process appends to {self._name} in the store {self._database.url}: this "
                "one did not renew its lease in time"
            )

        self._count += 1

    def append_all(self, lines: Sequence[bytes]) -> None:
        """Appends lines, each once, behind those that `read` found.

        Raises `StorageError` where another process has become the one that appends.
        """
        for start in range(0, len(lines), _AT_ONCE):
            some = lines[start : start + _AT_ONCE]
            # Lines that were stored before the connection broke are found, as in `append`.
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
                    "this one did not renew its lease in time"
                )

            self._count += len(some)

    def give(self) -> None:
        """Lets another process append."""
        self._lock.give(0)


class PostgresTexts:
    """The lines of one file of texts."""

    def __init__(self, database: Database, name: str) -> None:
        self._database, self._name = database, name

    def references(self) -> set[str]:
        """The references of all lines."""
        rows = self._database.run(
            "SELECT reference FROM memeval_texts WHERE name = :name", {"name": self._name}
        )
        return {str(row[0]) for row in rows}

    def read(self, references: Sequence[str]) -> dict[str, bytes]:
        """The lines of some references."""
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
        """Stores lines, each unless its reference is there already."""
        references = list(lines)
        for start in range(0, len(references), _AT_ONCE):
            some = references[start : start + _AT_ONCE]
            self._database.run(
                "INSERT INTO memeval_texts SELECT :name, * FROM "
                "unnest(CAST(:references AS text[]), CAST(:lines AS bytea[])) "
                "ON CONFLICT (name, reference) DO NOTHING",
                {
                    "name": self._name,
                    "references": some,
                    "lines": [lines[reference] for reference in some],
                },
            )
