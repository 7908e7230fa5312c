"""Calls an endpoint through the cache: one caller sends a request, the others wait."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from memeval.errors import ModelError, StorageError
from memeval.llm.cache_contract import CachedEntry, ReplyCache
from memeval.llm.flight import Flights
from memeval.llm.in_flight import in_flight
from memeval.llm.metering import current_ledger

T = TypeVar("T")

Entry = dict[str, Any]
"""A reply as the cache stores it: it took `latency_s` seconds, plus `wait_s` between tries."""
Values = Mapping[str, tuple[bytes, int | None]]
"""The results of a request, by text: a value and its share of the reported tokens."""


class _Stored:
    """The entries of a cache, as one run reads and stores them."""

    def __init__(
        self, cache: ReplyCache, origin: str, lose_store: Callable[[StorageError], None]
    ) -> None:
        """`origin` names the run that pays; `lose_store` is called if a reply can't be stored."""
        self._cache, self._origin, self._lose_store = cache, origin, lose_store
        self._unsound: set[str] = set()
        """Keys whose stored value is unsound; their next value replaces it."""

    async def _look_up(
        self, keys: Sequence[str], read: Callable[[bytes], T | None]
    ) -> dict[str, tuple[T, CachedEntry]]:
        """The sound entries under `keys`, decoded; `read` returns None for an unsound one."""
        stored = await self._cache.call(lambda: self._cache.get_all(keys))
        sound: dict[str, tuple[T, CachedEntry]] = {}
        for key, entry in stored.items():
            value = read(entry.value)
            if value is not None:
                sound[key] = value, entry
            elif key not in self._unsound:
                self._unsound.add(key)
                self._cache.note_unsound(key)

        return sound

    async def _store(self, values: Mapping[str, bytes], tokens: Mapping[str, int]) -> None:
        """Stores values. If that fails they are lost, and `lose_store` stops further paid calls."""
        try:
            await self._cache.call(lambda: self._put_all(values, tokens))
        except StorageError as error:
            in_flight.count_lost()
            self._lose_store(error)
            raise

    def _put_all(self, values: Mapping[str, bytes], tokens: Mapping[str, int]) -> None:
        for key in self._unsound & values.keys():
            self._cache.delete(key)
            self._unsound.discard(key)

        self._cache.put_all(values, self._origin, tokens)


class CachedCalls(_Stored):
    """Calls with one reply each."""

    def __init__(
        self, cache: ReplyCache, origin: str, lose_store: Callable[[StorageError], None]
    ) -> None:
        super().__init__(cache, origin, lose_store)
        self._flights = Flights[tuple[Entry, bool]](cache.leases())

    async def once(
        self,
        key: str,
        *,
        read: Callable[[bytes], Entry | None],
        call: Callable[[], Awaitable[Entry]],
        is_kept: Callable[[Entry], bool] = lambda _: True,
    ) -> tuple[Entry, bool]:
        """The reply under `key`, and whether another run paid for it.

        `read` decodes a stored value, or returns None; `is_kept` says whether a new reply is
        stored.
        """

        async def look(keys: Sequence[str]) -> dict[str, tuple[Entry, bool]]:
            stored = {}
            for stored_key, (entry, kept) in (await self._look_up(keys, read)).items():
                # A reply that this run paid for before a crash is billed to this run, as without
                # the crash.
                stored[stored_key] = (entry, kept.origin != self._origin)

            return stored

        async def ask(_: Sequence[str]) -> dict[str, tuple[Entry, bool]]:
            entry = await call()
            if is_kept(entry):
                await self._store({key: json.dumps(entry, ensure_ascii=False).encode()}, {})

            return {key: (entry, False)}

        with current_ledger().calling():
            fetched = await self._flights.fetch([key], look, ask)

        entry, cached = fetched[key]
        if not cached:
            current_ledger().wait_s += entry["wait_s"]

        return entry, cached

    def forget(self, key: str) -> None:
        """Drops a reply from the cache."""
        self._cache.forget(key)


class CachedBatches(_Stored):
    """Calls that carry many texts, each with its own entry in the cache."""

    def __init__(
        self,
        cache: ReplyCache,
        origin: str,
        *,
        size: int,
        at_once: int,
        is_sound: Callable[[bytes], bool],
        call: Callable[[Sequence[str]], Awaitable[Values]],
        lose_store: Callable[[StorageError], None],
    ) -> None:
        """One request carries up to `size` texts; up to `at_once` batches hold leases at a time."""
        super().__init__(cache, origin, lose_store)
        self._is_sound, self._call = is_sound, call
        self._flights = Flights[CachedEntry](cache.leases(), size=size, at_once=at_once)

    async def entries(self, keys: Mapping[str, str]) -> dict[str, CachedEntry]:
        """The entry of each text, in order; waits for entries that other callers are requesting."""
        texts = {key: text for text, key in keys.items()}

        def read(value: bytes) -> bytes | None:
            return value if self._is_sound(value) else None

        async def look(wanted: Sequence[str]) -> dict[str, CachedEntry]:
            stored = await self._look_up(wanted, read)
            return {key: entry for key, (_, entry) in stored.items()}

        async def ask(wanted: Sequence[str]) -> dict[str, CachedEntry]:
            return await self._call_and_store({texts[key]: key for key in wanted})

        with current_ledger().calling():
            fetched = await self._flights.fetch(list(texts), look, ask)

        return {text: fetched[key] for text, key in keys.items()}

    async def _call_and_store(self, batch: Mapping[str, str]) -> dict[str, CachedEntry]:
        try:
            results = await self._call(list(batch))
        except ModelError:
            current_ledger().failed += 1
            raise

        values, tokens, entries = {}, {}, {}
        for text, (value, part) in results.items():
            key = batch[text]
            values[key] = value
            entries[key] = CachedEntry(value=value, origin=self._origin, tokens=part)
            if part is not None:
                tokens[key] = part

        await self._store(values, tokens)
        return entries
