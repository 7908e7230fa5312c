"""Leases in the database: numbered locks that end with the lease of the process that holds them."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from memeval.errors import StorageError
from memeval.llm.leases import lock_of
from memeval.store.postgres.database import LEASE_S, RENEW_S, Database

TAKE_OVER_S = RENEW_S + 1.0
"""Seconds for which this process must see a lease as lapsed before it takes over its locks."""

_LIVE = (
    "EXISTS (SELECT 1 FROM memeval_holders h WHERE h.holder = l.holder AND "
    # No process could renew its lease while the server was down.
    "greatest(h.expires, pg_postmaster_start_time() + make_interval(secs => :lease)) > now())"
)
_OWN = "l.holder = excluded.holder"
# A row of the same holder is taken again: the statement may have been sent before, and its answer
# lost with the connection.
_TAKE = (
    "INSERT INTO memeval_locks AS l (name, number, holder) VALUES (:name, :number, :holder) "
    "ON CONFLICT (name, number) DO UPDATE SET holder = excluded.holder "
    "WHERE {} RETURNING number"
)
_TAKE_FREE, _TAKE_OVER = _TAKE.format(_OWN), _TAKE.format(f"{_OWN} OR NOT {_LIVE}")
_LAPSED = f"SELECT 1 FROM memeval_locks l WHERE name = :name AND number = :number AND NOT {_LIVE}"


class _Lapse(Struct):
    """When this process first and last saw that a lease had lapsed, on the monotonic clock."""

    first: float
    last: float


class LeasedLocks:
    """The locks of one name. Use `PostgresStore.locks`: a process has one object per name."""

    def __init__(self, database: Database, name: str) -> None:
        self._database, self._name = database, name
        self._held: set[int] = set()
        self._lapses: dict[int, _Lapse] = {}
        self._guard = threading.Lock()

    def acquire(self, number: int) -> bool:
        """Takes a lock unless this or another process holds it; returns whether it did."""
        with self._guard:
            if number in self._held:
                return False

            values = {"name": self._name, "number": number, "holder": self._database.holder}
            if not self._database.run(_TAKE_FREE, values) and not self._take_over(number, values):
                return False

            self._held.add(number)
            return True

    def _take_over(self, number: int, values: Mapping[str, Any]) -> bool:
        """Takes a lock whose lease has lapsed for a while; returns whether it did."""
        values = {**values, "lease": LEASE_S}
        if not self._database.run(_LAPSED, values):
            self._lapses.pop(number, None)
            return False

        # After an outage of the server, all leases have lapsed: live holders get time to renew
        # theirs.
        now = time.monotonic()
        lapse = self._lapses.get(number)
        if lapse is None or now - lapse.last > TAKE_OVER_S:
            lapse = self._lapses[number] = _Lapse(now, now)

        lapse.last = now
        if now - lapse.first < TAKE_OVER_S:
            return False

        del self._lapses[number]
        return bool(self._database.run(_TAKE_OVER, values))

    def has_lapsed(self, number: int) -> bool:
        """Whether the last `acquire` found a lapsed lease: the lock can soon be taken over."""
        return number in self._lapses

    def release(self, number: int) -> None:
        """Releases a lock that this process holds."""
        with self._guard:
            if number not in self._held:
                return

            # Within the guard, or it could delete the row of a thread that takes the lock now.
            self._database.run(
                "DELETE FROM memeval_locks WHERE name = :name AND number = :number "
                "AND holder = :holder",
                {"name": self._name, "number": number, "holder": self._database.holder},
            )
            self._held.discard(number)


class RowLeases:
    """Leases of requests as rows of the database."""

    def __init__(self, database: Database, locks: Callable[[str], LeasedLocks]) -> None:
        self._database, self._locks = database, locks

    async def acquire(self, keys: Iterable[str]) -> set[str]:
        wanted = list(keys)
        return await self._database.call(lambda: self._acquire(wanted), self._release)

    def _acquire(self, keys: Iterable[str]) -> set[str]:
        taken: set[str] = set()
        try:
            for key in keys:
                name, number = lock_of(key)
                if self._locks(name).acquire(number):
                    taken.add(key)
        except StorageError:
            self.release(taken)
            raise

        return taken

    def release(self, keys: Iterable[str]) -> None:
        leased = list(keys)
        self._database.post(lambda: self._release(leased))

    def _release(self, keys: Iterable[str]) -> None:
        for key in keys:
            name, number = lock_of(key)
            self._locks(name).release(number)
