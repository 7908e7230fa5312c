"""Numbered locks in the database. A lock ends with the lease of the process that holds it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memeval.store.postgres.database import LEASE_S, RENEW_S, Database

TAKE_OVER_S = RENEW_S + 1.0
"""How long a lease must be seen to have lapsed before its locks are taken over."""

_LIVE = (
    "EXISTS (SELECT 1 FROM memeval_holders h WHERE h.holder = l.holder AND "
    # Nobody could renew a lease while the server was away.
    "greatest(h.expires, pg_postmaster_start_time() + make_interval(secs => :lease)) > now())"
)
_OWN = "l.holder = excluded.holder"
# A row of this very holder is taken again: the statement may have been sent before, and its
# answer lost with the connection.
_TAKE = (
    "INSERT INTO memeval_locks AS l (name, number, holder) VALUES (:name, :number, :holder) "
    "ON CONFLICT (name, number) DO UPDATE SET holder = excluded.holder "
    "WHERE {} RETURNING number"
)
_TAKE_FREE, _TAKE_OVER = _TAKE.format(_OWN), _TAKE.format(f"{_OWN} OR NOT {_LIVE}")
_LAPSED = f"SELECT 1 FROM memeval_locks l WHERE name = :name AND number = :number AND NOT {_LIVE}"
_HELD = (
    "SELECT number FROM memeval_locks l WHERE name = :name AND number BETWEEN :first AND :last "
    f"AND holder <> :holder AND {_LIVE}"
)


@dataclass
class _Lapse:
    """How long this process has seen that a lease has lapsed."""

    first: float
    last: float


class LeasedLocks:
    """The locks of one name. Use `PostgresStore.locks`: a process has one object per name."""

    poll_s = 0.05

    def __init__(self, database: Database, name: str) -> None:
        self._database, self._name = database, name
        self._held: set[int] = set()
        self._lapses: dict[int, _Lapse] = {}
        self._guard = threading.Lock()

    def take(self, offset: int) -> bool:
        """Takes a lock unless this or another process holds it; returns whether it did."""
        with self._guard:
            if offset in self._held:
                return False

            values = {"name": self._name, "number": offset, "holder": self._database.holder}
            if not self._database.run(_TAKE_FREE, values) and not self._take_over(offset, values):
                return False

            self._held.add(offset)
            return True

    def _take_over(self, offset: int, values: Mapping[str, Any]) -> bool:
        """Takes a lock whose lease has lapsed for a while; returns whether it did."""
        values = {**values, "lease": LEASE_S}
        if not self._database.run(_LAPSED, values):
            self._lapses.pop(offset, None)
            return False

        # After a time in which the server answered nobody, all leases have lapsed: a holder that
        # lives gets the time to renew its own.
        now = time.monotonic()
        lapse = self._lapses.get(offset)
        if lapse is None or now - lapse.last > TAKE_OVER_S:
            lapse = self._lapses[offset] = _Lapse(now, now)

        lapse.last = now
        if now - lapse.first < TAKE_OVER_S:
            return False

        del self._lapses[offset]
        return bool(self._database.run(_TAKE_OVER, values))

    def take_first(self, offsets: Iterable[int]) -> int | None:
        """Takes the first lock that nobody holds, if there is one."""
        wanted = [offset for offset in offsets if offset not in self._held]
        if not wanted:
            return None

        # One question for all: it would take one each to try them in turn.
        taken = self._held_by_others(wanted[0], wanted[-1])
        free = (offset for offset in wanted if offset not in taken)

        return next((offset for offset in free if self.take(offset)), None)

    def give(self, offset: int) -> None:
        """Gives back a lock that this process holds."""
        with self._guard:
            if offset not in self._held:
                return

            self._held.discard(offset)
            # Within the guard: it would delete the row of a thread that takes the lock meanwhile.
            self._database.run(
                "DELETE FROM memeval_locks WHERE name = :name AND number = :number "
                "AND holder = :holder",
                {"name": self._name, "number": offset, "holder": self._database.holder},
            )

    def free(self, start: int, length: int) -> bool:
        """Whether no other process holds any of these locks."""
        return length <= 0 or not self._held_by_others(start, start + length - 1)

    def _held_by_others(self, first: int, last: int) -> set[int]:
        values = {
            "name": self._name,
            "first": first,
            "last": last,
            "holder": self._database.holder,
            "lease": LEASE_S,
        }
        return {int(row[0]) for row in self._database.run(_HELD, values)}

    def read(self, length: int) -> bytes:
        """The notes, from their beginning."""
        notes = bytearray(length)
        rows = self._database.run(
            "SELECT place, note FROM memeval_notes WHERE name = :name AND place < :length",
            {"name": self._name, "length": length},
        )
        for place, note in rows:
            notes[place : place + len(note)] = bytes(note)

        return bytes(notes)

    def write(self, offset: int, data: bytes) -> None:
        """Writes a note for other processes."""
        self._database.run(
            "INSERT INTO memeval_notes VALUES (:name, :place, :note) "
            "ON CONFLICT (name, place) DO UPDATE SET note = excluded.note",
            {"name": self._name, "place": offset, "note": data},
        )
