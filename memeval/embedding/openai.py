"""An embedder behind an OpenAI-compatible endpoint, with the embedding cache before it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memeval.embedding.contract import Embedder
from memeval.errors import MemevalError, ModelError
from memeval.llm.cache import Cache, CachedEntry, content_key
from memeval.llm.endpoint import MOST_BYTES, Endpoint
from memeval.llm.flight import Claims, Flights, Pace
from memeval.llm.metering import current_ledger
from memeval.llm.prices import provider_of
from memeval.llm.reply import ODD_USAGE, UnsoundReplyError, VectorsReply, read_vectors, sound_vector
from memeval.llm.tokens import count_tokens
from memeval.records import Role, Usage

if TYPE_CHECKING:
    from memeval.embedding.contract import Vectors

BATCH = 128
"""Texts sent in one request."""
AGREEING = 5
"""Replies in a row of another width than the first one's after which theirs is taken to be the model's."""
WIDEST, BYTES_PER_NUMBER = 16_384, 32
"""Bounds of a reply's size: numbers per vector, and bytes that a number in JSON takes."""

BATCHES_AT_ONCE = 8
"""Batches that a process claims ahead, where the endpoint has fewer places: locks are searched one
by one."""

UNREADABLE = -1
"""Kept in place of a text's tokens where what the endpoint reported is no count."""

Flight = Mapping[str, asyncio.Future[None]]


class OpenAIEmbedder(Embedder):
    """Embeds texts at an endpoint; a text embedded before by the same model is read from the cache.
    Vectors are brought to length 1.

    A text that another caller of this embedder has asked for is waited for, and not sent twice. A
    blank text gets the zero vector: most endpoints refuse it.
    """

    def __init__(
        self, endpoint: Endpoint, model: str, width: int | None, cache: Cache, origin: str
    ) -> None:
        """`width` asks the endpoint for shorter vectors (`dimensions`); None takes the model's own
        width."""
        self.name = f"{model}/{width}" if width else model
        self.width = width or 0
        self._endpoint, self._model, self._cache, self._origin = endpoint, model, cache, origin
        self._requested = width
        self._claims = Claims.beside(cache.path)
        self._flights = Flights[CachedEntry](self._claims)
        self._unsound: set[str] = set()
        """Keys under which an unsound vector lies: what comes instead is written over it."""
        self._turns = asyncio.Semaphore(max(BATCHES_AT_ONCE, endpoint.settings.max_concurrency))
        self._other_widths: Counter[int] = Counter()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        keys = {text: self._key(text) for text in texts if text.strip()}
        with current_ledger().calling():
            entries = await self._entries(keys)
        self._meter(entries)

        found = {text: entry.value for text, entry in entries.items()}
        widths = {len(vector) // 4 for vector in found.values()}
        if len(widths) > 1:
            raise ModelError(
                f"the vectors differ in width: {', '.join(map(str, sorted(widths)))} numbers"
            )
        self.width = self.width or next(iter(widths), 0)
        blank = np.zeros(self.width, dtype=np.float32)
        rows = [
            np.frombuffer(found[text], dtype=np.float32) if text in found else blank
            for text in texts
        ]
        return np.stack(rows) if rows else np.zeros((0, self.width), dtype=np.float32)

    def _key(self, text: str) -> str:
        return content_key(
            {"endpoint": self._endpoint.settings.base_url, "embedder": self.name, "text": text}
        )

    async def _entries(self, keys: Mapping[str, str]) -> dict[str, CachedEntry]:
        """What the cache holds of the texts, or will hold when those under way have come; in the
        order of the texts."""
        found: dict[str, CachedEntry] = {}
        while missing := [text for text in keys if text not in found]:
            stored = self._found(keys[text] for text in missing)
            found |= {text: stored[keys[text]] for text in missing if keys[text] in stored}

            open_texts = [text for text in missing if text not in found]
            others = [flight for text in open_texts if (flight := self._flights.others(keys[text]))]
            fresh = {
                text: keys[text] for text in open_texts if not self._flights.others(keys[text])
            }
            found |= await self._ask_all(fresh)

            began = time.perf_counter()
            for flight in others:
                await asyncio.shield(flight)
            current_ledger().idle_s += time.perf_counter() - began if others else 0.0
        return {text: found[text] for text in keys}

    async def _ask_all(self, keys: Mapping[str, str]) -> dict[str, CachedEntry]:
        """What comes for texts that nobody here has asked for yet; whoever wants one of them
        meanwhile waits, and shares a failure.

        The batches depend on the texts alone, and each is stored whole or not at all: after a crash
        the rest falls into the same batches.
        """
        texts = list(keys)
        batches = [
            {text: keys[text] for text in texts[start : start + BATCH]}
            for start in range(0, len(texts), BATCH)
        ]
        own = [self._flights.begin(batch.values()) for batch in batches]
        outcomes = await asyncio.gather(*map(self._fly, batches, own), return_exceptions=True)

        found: dict[str, CachedEntry] = {}
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            found |= outcome
        return found

    async def _fly(self, batch: Mapping[str, str], own: Flight) -> dict[str, CachedEntry]:
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
        """What comes for a batch; texts that another process asks for are waited for, and asked for
        where it fails."""
        found: dict[str, CachedEntry] = {}
        pace = Pace()
        while missing := {text: key for text, key in batch.items() if text not in found}:
            claimed = {text: key for text, key in missing.items() if self._claims.take(key)}
            try:
                stored = self._found(
                    missing.values()
                )  # another process may have stored them before it let go
                found |= {text: stored[key] for text, key in missing.items() if key in stored}
                to_ask = {
                    text: key
                    for text, key in (missing if pace.over else claimed).items()
                    if text not in found
                }
                if to_ask:
                    found |= await self._ask(to_ask)
            finally:
                self._claims.give(claimed.values())

            if len(found) < len(batch):
                began = time.perf_counter()
                await pace.wait()
                current_ledger().idle_s += time.perf_counter() - began
        return found

    async def _ask(self, batch: Mapping[str, str]) -> dict[str, CachedEntry]:
        """The vectors of texts in one request, stored with what it took."""
        texts = list(batch)
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._requested:
            body["dimensions"] = self._requested
        reply = await self._endpoint.post(
            "/embeddings",
            body,
            lambda sent: self._read(sent, len(texts)),
            most_bytes=max(MOST_BYTES, len(texts) * WIDEST * BYTES_PER_NUMBER),
        )

        parts = shares(reply.value.tokens, texts)
        if ODD_USAGE in reply.value.notes:
            parts = dict.fromkeys(texts, UNREADABLE)
        packed = {
            text: vector.tobytes() for text, vector in zip(texts, reply.value.vectors, strict=True)
        }
        self._keep(
            {batch[text]: value for text, value in packed.items()},
            {batch[text]: tokens for text, tokens in parts.items()},
        )
        return {
            text: CachedEntry(value, self._origin, parts.get(text))
            for text, value in packed.items()
        }

    def _keep(self, vectors: Mapping[str, bytes], tokens: Mapping[str, int]) -> None:
        """Stores the vectors by their keys, over those that are unsound."""
        for key in self._unsound & vectors.keys():
            self._cache.delete(key)
            self._unsound.discard(key)
        self._cache.put_all(vectors, self._origin, tokens)

    def _found(self, keys: Iterable[str]) -> dict[str, CachedEntry]:
        """What the cache holds that may be used."""
        stored = self._cache.get_all(keys)
        sound = {key: entry for key, entry in stored.items() if self._sound(entry.value)}
        self._unsound |= stored.keys() - sound.keys()
        return sound

    def _sound(self, value: bytes) -> bool:
        """Whether a stored vector may be used; the first one that is tells the model's width, as a reply does."""
        if not sound_vector(value, self.width):
            return False
        self.width = self.width or len(value) // 4
        return True

    def _read(self, reply: Mapping[str, Any], count: int) -> VectorsReply:
        """The vectors of a reply. The first sound one tells the model's width, which all others then have.

        Where reply after reply has another, the first was the odd one: what it brought is then asked for again.
        """
        sound = read_vectors(reply, count, self._requested)
        width = sound.vectors.shape[1]
        if self.width and width != self.width:
            self._other_widths[width] += 1
            if self._other_widths[width] < AGREEING:
                raise UnsoundReplyError(
                    f"the vectors have {width} numbers, where this model's have {self.width}"
                )
        else:
            self._other_widths.clear()
        self.width = width
        return sound

    def _meter(self, entries: Mapping[str, CachedEntry]) -> None:
        """Meters what texts took, whether it was now or before: by their parts of the reported
        tokens, else by counts of our own.

        A call is what one request could carry, whichever texts were sent together: a run that is
        resumed counts as many.
        """
        kinds: dict[tuple[bool, bool], list[int]] = {}
        for text, entry in entries.items():
            estimated = entry.tokens is None or entry.tokens < 0
            if entry.tokens == UNREADABLE:
                current_ledger().mended[ODD_USAGE] += 1
            tokens = count_tokens(text) if estimated else entry.tokens or 0
            kinds.setdefault((estimated, entry.origin != self._origin), []).append(tokens)

        for (estimated, cached), counts in sorted(kinds.items()):
            current_ledger().usages.append(
                Usage(
                    role=Role.EMBED,
                    model=self._model,
                    provider=provider_of(self._endpoint.settings.base_url),
                    prompt_tokens=sum(counts),
                    completion_tokens=0,
                    estimated=estimated,
                    cached=cached,
                    calls=-(-len(counts) // BATCH),
                )
            )


def shares(reported: int | None, texts: Sequence[str]) -> dict[str, int]:
    """The tokens that an endpoint reported for a request, shared out over its texts by their length:
    the shares add up to them. Nothing where it reported none.
    """
    if reported is None:
        return {}

    weights = [max(1, count_tokens(text)) for text in texts]
    whole, before, parts = sum(weights), 0, {}
    for text, weight in zip(texts, weights, strict=True):
        parts[text] = reported * (before + weight) // whole - reported * before // whole
        before += weight
    return parts
