"""Cached replies and vectors in the database."""

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from memeval.errors import StorageError
from memeval.llm.cache import Cache
from memeval.llm.cache_contract import CachedEntry, Damage
from memeval.llm.cache_file import checksum, sound_entry
from memeval.store.postgres.database import Database
from memeval.store.postgres.leases import RowLeases

T = TypeVar("T")

_KEYS_AT_ONCE = 10_000
_PUT = (
    "INSERT INTO memeval_entries (cache, key, value, origin, crc, tokens) "
    "SELECT :cache, * FROM unnest(CAST(:keys AS text[]), CAST(:entries AS bytea[]), "
    "CAST(:origins AS text[]), CAST(:crcs AS bigint[]), CAST(:tokens AS bigint[])) "
    "ON CONFLICT (cache, key) DO NOTHING"
)


class PostgresCache:
    """A cache that all users of the database share."""

    def __init__(
        self,
        database: Database,
        name: str,
        leases: RowLeases,
        kept: Path,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """`kept` is the file for replies paid for while the database was unreachable."""
        self._database, self._name, self._leases = database, name, leases
        self._forgetting: dict[str, Future[None]] = {}
        """Pending removals by key, which the next look-up waits for."""
        self._kept_path = kept
        self._kept = Cache(kept, say) if kept.exists() else None
        self._keeping = threading.Lock()
        self._damage = Damage(f"the cache {name} in the store {database.url}", say)

    async def call(self, work: Callable[[], T]) -> T:
        return await self._database.call(work)

    def get_all(self, keys: Iterable[str]) -> dict[str, CachedEntry]:
        wanted = list(keys)
        for key in wanted:
            if (removal := self._forgetting.get(key)) is not None:
                removal.result()

        rows = self._database.run(
            "SELECT key, value, origin, crc, tokens FROM memeval_entries "
            "WHERE cache = :cache AND key = ANY(:keys)",
            {"cache": self._name, "keys": wanted},
        )
        sound: dict[str, CachedEntry] = {}
        for key, value, origin, crc, tokens in rows:
            entry = sound_entry((key, bytes(value), origin, crc, tokens))
            if entry is not None:
                sound[key] = entry
            else:
                # Deleted, and not only skipped: the first writer of a key wins, even over damage.
                self.delete(key)
                self._damage.note(key)

        if self._kept is None:
            return sound

        kept = self._kept.get_all(key for key in wanted if key not in sound)
        for key, entry in kept.items():
            part = {} if entry.tokens is None else {key: entry.tokens}
            self.put_all({key: entry.value}, entry.origin, part)

        return sound | kept

    def keys(self) -> set[str]:
        # Page by page after the last key: an OFFSET would read all rows before it each time.
        keys: set[str] = set()
        last = ""
        while True:
            rows = self._database.run(
                "SELECT key FROM memeval_entries WHERE cache = :cache AND key > :last "
                "ORDER BY key LIMIT :most",
                {"cache": self._name, "last": last, "most": _KEYS_AT_ONCE},
            )
            if not rows:
                return keys

            keys.update(str(row[0]) for row in rows)
            last = rows[-1][0]

    def put_all(
        self, values: Mapping[str, bytes], origin: str, tokens: Mapping[str, int] | None = None
    ) -> None:
        try:
            self._send(values, origin, tokens or {})
        except StorageError:
            with self._keeping:
                self._kept = self._kept or Cache(self._kept_path)
                for key in values:
                    self._kept.delete(key)

                self._kept.put_all(values, origin, tokens)

    def _send(self, values: Mapping[str, bytes], origin: str, tokens: Mapping[str, int]) -> None:
        parts = {key: tokens.get(key) for key in values}
        self._database.run(
            _PUT,
            {
                "cache": self._name,
                "keys": list(values),
                "entries": list(values.values()),
                "origins": [origin] * len(values),
                "crcs": [checksum(key, values[key], origin, parts[key]) for key in values],
                "tokens": list(parts.values()),
            },
        )

    def delete(self, key: str) -> None:
        if self._kept is not None:
            self._kept.delete(key)

        self._database.run(
            "DELETE FROM memeval_entries WHERE cache = :cache AND key = :key",
            {"cache": self._name, "key": key},
        )

    def forget(self, key: str) -> None:
        removal: Future[None] = Future()
        self._forgetting[key] = removal

        def remove() -> None:
            try:
                self.delete(key)
            finally:
                self._forgetting.pop(key, None)
                removal.set_result(None)

        self._database.post(remove)

    def leases(self) -> RowLeases:
        return self._leases

    def note_unsound(self, key: str) -> None:
        self._damage.note(key)

    def close(self) -> None:
        """Closes everything but the connection, which belongs to the whole process."""
        with self._keeping:
            if self._kept is not None:
                self._kept.close()
                self._kept = None

        self._damage.close()
