"""One way for models, embedders and rerankers to call an endpoint: look in the cache, else let one
caller call for all who want the same, and store what comes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from memeval.errors import MemevalError, ModelError
from memeval.llm.cache import Cache, CachedEntry
from memeval.llm.flight import Claims, Flights, Pace
from memeval.llm.metering import current_ledger

Entry = dict[str, Any]
"""A reply as the cache keeps it. It took `latency_s` seconds, and waited `wait_s` between tries."""


class CachedCalls:
    """Calls of which each has a reply of its own."""

    def __init__(self, cache: Cache, origin: str) -> None:
        """`origin` names the run: replies that this run paid for before a crash are its own."""
        self._cache, self._origin = cache, origin
        self._flights = Flights[tuple[Entry, bool]](Claims.beside(cache.path))

    async def once(
        self,
        key: str,
        *,
        read: Callable[[bytes], Entry | None],
        call: Callable[[], Awaitable[Entry]],
        is_kept: Callable[[Entry], bool] = lambda _: True,
    ) -> tuple[Entry, bool]:
        """The reply under `key`, and whether another run paid for it.

        `read` brings an entry of the cache, None for an unsound one; `call` makes the call, and
        `is_kept` says whether its reply is stored. Waits are metered in the ledger in force.
        """
        with current_ledger().calling():
            entry, cached = await self._flights.once(
                key,
                look=lambda: self._stored(key, read),
                ask=lambda: self._called(key, call, is_kept),
            )

        current_ledger().wait_s += 0.0 if cached else entry["wait_s"]
        return entry, cached

    def forget(self, key: str) -> None:
        """Drops a reply from the cache."""
        self._cache.delete(key)

    def _stored(self, key: str, read: Callable[[bytes], Entry | None]) -> tuple[Entry, bool] | None:
        stored = self._cache.get(key)
        entry = read(stored.value) if stored is not None else None
        if stored is None or entry is None:
            return None

        current_ledger().replayed_s += entry["latency_s"]
        return entry, stored.origin != self._origin

    async def _called(
        self, key: str, call: Callable[[], Awaitable[Entry]], is_kept: Callable[[Entry], bool]
    ) -> tuple[Entry, bool]:
        entry = await call()
        if is_kept(entry):
            # What is stored there already is unsound, else it would have been used.
            put = self._cache.put if self._cache.get(key) is None else self._cache.replace
            put(key, json.dumps(entry, ensure_ascii=False).encode(), self._origin)

        return entry, False


Values = Mapping[str, tuple[bytes, int | None]]
"""What a request brought, by text: the value, and its part of the tokens that were reported."""


class CachedBatches:
    """Calls that carry many texts, each with an entry of its own in the cache."""

    def __init__(
        self,
        cache: Cache,
        origin: str,
        *,
        size: int,
        at_once: int,
        is_sound: Callable[[bytes], bool],
        call: Callable[[Sequence[str]], Awaitable[Values]],
    ) -> None:
        """`size` texts are sent in one request at most.

        `at_once` batches are claimed ahead: locks are searched one by one. `is_sound` says whether
        a stored value may be used; `call` makes one request.
        """
        self._cache, self._origin = cache, origin
        self._size, self._is_sound, self._call = size, is_sound, call
        self._claims = Claims.beside(cache.path)
        self._flights = Flights[CachedEntry](self._claims)
        self._turns = asyncio.Semaphore(at_once)
        self._unsound: set[str] = set()
        """Keys with an unsound value, which is replaced by the next one."""

    async def entries(self, keys: Mapping[str, str]) -> dict[str, CachedEntry]:
        """The entry of each text, in the order of the texts.

        What the cache holds, or will hold once the requests under way have come back. A text that
        another caller has asked for is waited for, and not sent twice.
        """
        with current_ledger().calling():
            return await self._entries(keys)

    async def _entries(self, keys: Mapping[str, str]) -> dict[str, CachedEntry]:
        entries: dict[str, CachedEntry] = {}
        while missing := [text for text in keys if text not in entries]:
            stored = self._stored(keys[text] for text in missing)
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

            entries |= await self._call_all(fresh)

            began = time.perf_counter()
            for flight in others:
                await asyncio.shield(flight)

            current_ledger().idle_s += time.perf_counter() - began if others else 0.0

        return {text: entries[text] for text in keys}

    async def _call_all(self, keys: Mapping[str, str]) -> dict[str, CachedEntry]:
        """The entries of texts that nobody here has asked for yet.

        Whoever wants one of them meanwhile waits, and shares a failure. The batches depend on the
        texts alone, and each is stored completely or not at all: after a crash the rest falls into
        the same batches.
        """
        texts = list(keys)
        batches = [
            {text: keys[text] for text in texts[start : start + self._size]}
            for start in range(0, len(texts), self._size)
        ]
        own = [self._flights.begin(batch.values()) for batch in batches]
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
                return await self._claim(batch)
        except MemevalError as error:
            current_ledger().failed += isinstance(error, ModelError)
            self._flights.end(own, error)
            raise
        finally:
            self._flights.end(own)

    async def _claim(self, batch: Mapping[str, str]) -> dict[str, CachedEntry]:
        """The entries of a batch.

        Texts that another process asks for are waited for, and asked for where it fails.
        """
        entries: dict[str, CachedEntry] = {}
        pace = Pace()
        while missing := {text: key for text, key in batch.items() if text not in entries}:
            claimed = {text: key for text, key in missing.items() if self._claims.take(key)}
            try:
                # Another process may have stored them before it gave up its claim.
                stored = self._stored(missing.values())
                entries |= {text: stored[key] for text, key in missing.items() if key in stored}

                wanted = missing if pace.over else claimed
                to_call = {text: key for text, key in wanted.items() if text not in entries}
                if to_call:
                    entries |= await self._called(to_call)
            finally:
                self._claims.give(claimed.values())

            if len(entries) < len(batch):
                began = time.perf_counter()
                await pace.wait()
                current_ledger().idle_s += time.perf_counter() - began

        return entries

    async def _called(self, batch: Mapping[str, str]) -> dict[str, CachedEntry]:
        """What one request brings, stored."""
        brought = await self._call(list(batch))
        values = {batch[text]: value for text, (value, _) in brought.items()}
        tokens = {batch[text]: part for text, (_, part) in brought.items() if part is not None}

        for key in self._unsound & values.keys():
            self._cache.delete(key)
            self._unsound.discard(key)

        self._cache.put_all(values, self._origin, tokens)
        return {
            text: CachedEntry(value=value, origin=self._origin, tokens=part)
            for text, (value, part) in brought.items()
        }

    def _stored(self, keys: Iterable[str]) -> dict[str, CachedEntry]:
        """What the cache holds that may be used."""
        stored = self._cache.get_all(keys)
        sound = {key: entry for key, entry in stored.items() if self._is_sound(entry.value)}
        self._unsound |= stored.keys() - sound.keys()
        return sound
