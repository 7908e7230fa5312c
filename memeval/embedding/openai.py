"""An embedder behind an OpenAI-compatible endpoint, with the embedding cache before it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memeval.embedding.contract import Embedder
from memeval.errors import ModelError
from memeval.llm.cache import Cache, content_key
from memeval.llm.endpoint import MOST_BYTES, Endpoint
from memeval.llm.metering import current_ledger
from memeval.llm.prices import provider_of
from memeval.llm.reply import UnsoundReplyError, VectorsReply, read_vectors, sound_vector
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

Vector = bytes
"""float32 numbers as they lie in memory."""


class OpenAIEmbedder(Embedder):
    """Embeds texts at an endpoint; a text embedded before by the same model is read from the cache. Vectors are brought to length 1.

    A text that another caller of this embedder has asked for is waited for, and not sent twice. A blank text gets the zero vector: most
    endpoints refuse it.
    """

    def __init__(self, endpoint: Endpoint, model: str, width: int | None, cache: Cache, origin: str) -> None:
        """`width` asks the endpoint for shorter vectors (`dimensions`); None takes the model's own width."""
        self.name = f"{model}/{width}" if width else model
        self.width = width or 0
        self._endpoint, self._model, self._cache, self._origin = endpoint, model, cache, origin
        self._requested = width
        self._under_way: dict[str, asyncio.Future[Vector]] = {}
        self._other_widths: Counter[int] = Counter()
        self._replaced: set[str] = set()
        """Texts whose stored vector is unsound: what comes instead is written over it."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        found: dict[str, Vector] = {}
        fresh: list[str] = []
        awaited: dict[str, asyncio.Future[Vector]] = {}
        for text in dict.fromkeys(text for text in texts if text.strip()):
            entry = self._cache.get(self._key(text))
            if entry is not None and not self._sound(entry.value):
                entry = None
                self._replaced.add(text)
            if entry is not None:
                found[text] = entry.value
                self._meter([text], None, cached=entry.origin != self._origin)
            elif text in self._under_way:
                awaited[text] = self._under_way[text]
            else:
                fresh.append(text)
        found |= await self._ask_all(fresh)
        for text, coming in awaited.items():
            found[text] = await asyncio.shield(coming)
            self._meter([text], None, cached=False)  # as if it were read back: whoever came first, the usage is the same
        self.width = self.width or next((len(vector) // 4 for vector in found.values()), 0)
        blank = np.zeros(self.width, dtype=np.float32)
        rows = [np.frombuffer(found[text], dtype=np.float32) if text in found else blank for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.width), dtype=np.float32)

    def _sound(self, value: bytes) -> bool:
        """Whether a stored vector may be used; the first one that is tells the model's width, as a reply does."""
        if not sound_vector(value, self.width):
            return False
        self.width = self.width or len(value) // 4
        return True

    def _key(self, text: str) -> str:
        return content_key({"endpoint": self._endpoint.settings.base_url, "embedder": self.name, "text": text})

    async def _ask_all(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors of texts that nobody has asked for yet; whoever wants one of them meanwhile waits for it, and shares its failure."""
        loop = asyncio.get_running_loop()
        self._under_way |= {text: loop.create_future() for text in texts}
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        found: dict[str, Vector] = {}
        try:
            for batch, vectors in zip(batches, await asyncio.gather(*map(self._ask, batches)), strict=True):
                found |= dict(zip(batch, vectors, strict=True))
        except ModelError as error:
            self._settle(texts, found, error)
            raise
        finally:
            self._settle(texts, found, ModelError("the call that others waited for was given up"))
        return found

    def _settle(self, texts: Sequence[str], found: Mapping[str, Vector], error: ModelError) -> None:
        """Tells those who wait for the texts what came, or the error where nothing did."""
        for coming, text in ((self._under_way.pop(text, None), text) for text in texts):
            if coming is None or coming.done():
                continue
            if text in found:
                coming.set_result(found[text])
            else:
                coming.set_exception(error)
                coming.exception()  # looked at here: nobody need be waiting

    async def _ask(self, batch: Sequence[str]) -> list[Vector]:
        body: dict[str, Any] = {"model": self._model, "input": list(batch), "encoding_format": "float"}
        if self._requested:
            body["dimensions"] = self._requested
        reply = await self._endpoint.post(
            "/embeddings",
            body,
            lambda sent: self._read(sent, len(batch)),
            most_bytes=max(MOST_BYTES, len(batch) * WIDEST * BYTES_PER_NUMBER),
        )
        current_ledger().mended.update(reply.value.notes)
        self._meter(batch, reply.value.tokens, cached=False)
        packed = [vector.tobytes() for vector in reply.value.vectors]
        for text, value in zip(batch, packed, strict=True):
            put = self._cache.replace if text in self._replaced else self._cache.put
            put(self._key(text), value, self._origin)
            self._replaced.discard(text)
        return packed

    def _read(self, reply: Mapping[str, Any], count: int) -> VectorsReply:
        """The vectors of a reply. The first sound one tells the model's width, which all others then have.

        Where reply after reply has another, the first was the odd one: what it brought is then asked for again.
        """
        sound = read_vectors(reply, count, self._requested)
        width = sound.vectors.shape[1]
        if self.width and width != self.width:
            self._other_widths[width] += 1
            if self._other_widths[width] < AGREEING:
                raise UnsoundReplyError(f"the vectors have {width} numbers, where this model's have {self.width}")
        else:
            self._other_widths.clear()
        self.width = width
        return sound

    def _meter(self, texts: Sequence[str], reported: int | None, *, cached: bool) -> None:
        """Embedding calls are metered by tokens; a cached text's are counted here, as the endpoint reports batches only."""
        tokens = reported if reported is not None else sum(map(count_tokens, texts))
        current_ledger().usages.append(
            Usage(
                role=Role.EMBED,
                model=self._model,
                provider=provider_of(self._endpoint.settings.base_url),
                prompt_tokens=tokens,
                completion_tokens=0,
                estimated=reported is None,
                cached=cached,
            )
        )
