"""Calls an endpoint through the cache: one caller sends a request, the others wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from memeval.errors import MemevalError, ModelError, StorageError
from memeval.llm.cache_contract import CachedEntry, ReplyCache
from memeval.llm.flight import Flights, Pace
from memeval.llm.in_flight import in_flight
from memeval.llm.metering import current_ledger

Entry = dict[str, Any]
"""A reply as the cache keeps it. It took `latency_s` seconds, and waited `wait_s` between tries."""


class CachedCalls:
    """Calls with one reply each."""

    def __init__(
        self, cache: ReplyCache, origin: str, lose_store: Callable[[StorageError], None]
    ) -> None:
        """`origin` names the run that pays; `lose_store` is called if a reply can't be stored."""
        self._cache, self._origin, self._lose_store = cache, origin, lose_store
        self._flights = Flights[tuple[Entry, bool]](cache.leases())
        self._unsound: set[str] = set()
        """Keys with an unsound value, which is replaced by the next one."""

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
        with current_ledger().calling():
            entry, cached = await self._flights.once(
                key,
                look=lambda: self._read_stored(key, read),
                ask=lambda: self._call(key, call, is_kept),
            )

        current_ledger().wait_s += 0.0 if cached else entry["wait_s"]
        return entry, cached

    def forget(self, key: str) -> None:
        """Drops a reply from the cache."""
        self._cache.forget(key)

    async def _read_stored(
        self, key: str, read: Callable[[bytes], Entry | None]
    ) -> tuple[Entry, bool] | None:
        stored = await self._cache.call(lambda: self._cache.get(key))
        entry = read(stored.value) if stored is not None else None
        if stored is not None and entry is None:
            self._unsound.add(key)
            self._cache.note_unsound(key)
        if stored is None or entry is None:
            return None

        # A reply that this run paid for before a crash is billed to it, as it would be without the
        # crash.
        return entry, stored.origin != self._origin

    async def _call(
        self, key: str, call: Callable[[], Awaitable[Entry]], is_kept: Callable[[Entry], bool]
    ) -> tuple[Entry, bool]:
        entry = await call()
        if is_kept(entry):
            value = json.dumps(entry, ensure_ascii=False).encode()
            with _storing(self._lose_store):
                await self._cache.call(lambda: self._put(key, value))

        return entry, False

    def _put(self, key: str, value: bytes) -> None:
        put = self._cache.replace if key in self._unsound else self._cache.put
        put(key, value, self._origin)
        self._unsound.discard(key)


@contextmanager
def _storing(lose_store: Callable[[StorageError], None]) -> Iterator[None]:
    """Counts a reply that can't be stored, and keeps others from being paid for."""
    try:
        yield
    except StorageError as error:
        in_flight.lose()
        lose_store(error)
        raise


Values = Mapping[str, tuple[bytes, int | None]]
"""The results of a request by text: a value, and its part of the reported tokens."""


class CachedBatches:
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
        """At most `size` texts are sent in one request, and `at_once` batches are leased ahead."""
        self._cache, self._origin, self._lose_store = cache, origin, lose_store
        self._size, self._is_sound, self._call = size, is_sound, call
        self._leases = cache.leases()
        self._flights = Flights[CachedEntry](self._leases)
        self._turns = asyncio.Semaphore(at_once)
        self._unsound: set[str] = set()
        """Keys with an unsound value, which is replaced by the next one."""

    async def entries(self, keys: Mapping[str, str]) -> dict[str, CachedEntry]:
        """The entry of each text, in their order; those under way elsewhere are waited for."""
        with current_ledger().calling():
            return await self._entries(keys)

    async def _entries(self, keys: Mapping[str, str]) -> dict[str, CachedEntry]:
        entries: dict[str, CachedEntry] = {}
        while missing := [text for text in keys if text not in entries]:
            stored = await self._read_stored([keys[text] for text in missing])
            entries |= {text: stored[keys[text]] for text in missing if keys[text] in stored}

            fresh: dict[str, str] = {}
            others: list[asyncio.Future[None]] = []
            for text in missing:
                if text in entries:
                    continue

                flight = self._flights.others(keys[text])
                if flight is None:
                    fresh[text] = keys[text]
                else:
                    others.append(flight)

            # Own requests first: those of others go on meanwhile.
            entries |= await self._call_all(fresh)

            for flight in others:
                # A caller that is cancelled must not cancel the request that others wait for.
                await asyncio.shield(flight)

        return {text: entries[text] for text in keys}

    async def _call_all(self, keys: Mapping[str, str]) -> dict[str, CachedEntry]:
        """Requests texts that no other caller of this process has requested."""
        # Batches depend only on the texts, and each is stored completely or not at all. So after a
        # crash the rest falls into the same batches.
        texts = list(keys)
        batches: list[dict[str, str]] = []
        for start in range(0, len(texts), self._size):
            batch = texts[start : start + self._size]
            batches.append({text: keys[text] for text in batch})

        own = [self._flights.begin(batch.values()) for batch in batches]
        # Every batch ends before an error is raised: what the others have paid for is stored.
        outcomes = await asyncio.gather(*map(self._fly, batches, own), return_exceptions=True)

        entries: dict[str, CachedEntry] = {}
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

            entries |= outcome

        return entries

    async def _fly(
        self, batch: Mapping[str, str], own: Mapping[str, asyncio.Future[None]]
    ) -> dict[str, CachedEntry]:
        try:
            async with self._turns:
                return await self._lease(batch)
        except MemevalError as error:
            current_ledger().failed += isinstance(error, ModelError)
            self._flights.end(own, error)
            raise
        finally:
            self._flights.end(own)

    async def _lease(self, batch: Mapping[str, str]) -> dict[str, CachedEntry]:
        """The entries of a batch; texts leased by another process are waited for."""
        entries: dict[str, CachedEntry] = {}
        pace = Pace()
        while missing := {text: key for text, key in batch.items() if text not in entries}:
            leased = await self._leases.take(missing.values())
            try:
                # Another process may have stored them before it gave its lease back.
                stored = await self._read_stored(missing.values())
                entries |= {text: stored[key] for text, key in missing.items() if key in stored}

                # A process that holds its lease too long may be stopped for ever, so its texts
                # are requested here.
                wanted = set(missing.values()) if pace.over else leased
                to_call = {
                    text: key
                    for text, key in missing.items()
                    if key in wanted and text not in entries
                }
                if to_call:
                    entries |= await self._call_and_store(to_call)
            finally:
                self._leases.give(leased)

            if len(entries) < len(batch):
                await pace.wait()

        return entries

    async def _call_and_store(self, batch: Mapping[str, str]) -> dict[str, CachedEntry]:
        """Makes one request and stores its results."""
        results = await self._call(list(batch))
        values = {batch[text]: value for text, (value, _) in results.items()}
        tokens = {batch[text]: part for text, (_, part) in results.items() if part is not None}

        with _storing(self._lose_store):
            await self._cache.call(lambda: self._put_all(values, tokens))

        return {
            text: CachedEntry(value=value, origin=self._origin, tokens=part)
            for text, (value, part) in results.items()
        }

    def _put_all(self, values: Mapping[str, bytes], tokens: Mapping[str, int]) -> None:
        for key in self._unsound & values.keys():
            self._cache.delete(key)
            self._unsound.discard(key)

        self._cache.put_all(values, self._origin, tokens)

    async def _read_stored(self, keys: Iterable[str]) -> dict[str, CachedEntry]:
        """The sound entries of the cache under `keys`."""
        stored = await self._cache.call(lambda: self._cache.get_all(keys))
        sound = {key: entry for key, entry in stored.items() if self._is_sound(entry.value)}
        for key in stored.keys() - sound.keys() - self._unsound:
            self._unsound.add(key)
            self._cache.note_unsound(key)

        return sound
