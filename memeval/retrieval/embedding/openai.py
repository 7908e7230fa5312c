"""An embedder behind an OpenAI-compatible endpoint, with the embedding cache in front of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from struct import Struct
from typing import Any, Self

from memeval.config.roles import EMBEDDER_LIMIT
from memeval.config.schema import MAX_TEXTS, EmbedderConfig
from memeval.errors import ModelError, UserError
from memeval.llm.cache import content_key
from memeval.llm.cache_contract import CachedEntry, ReplyCache
from memeval.llm.cached_call import CachedBatches
from memeval.llm.endpoint import Endpoint
from memeval.llm.metering import DIGITS, current_ledger
from memeval.llm.network import Network, endpoint_settings
from memeval.llm.refusals import RefusedRequestError
from memeval.llm.reply.body import ODD_USAGE, UnsoundReplyError
from memeval.llm.reply.vectors import VectorsReply, read_vectors, sound_vector
from memeval.llm.tokens import count_tokens
from memeval.records import RequestTokens, Role, Usage
from memeval.results.prices import provider_of
from memeval.retrieval.embedding.contract import Embedder, Vectors

AGREEING = 5
"""After this many consecutive replies with another width than the first one, that width counts."""
BATCHES_AT_ONCE = 8
"""Minimum batches that a process leases ahead, even at an endpoint with fewer slots."""

TIMED = b"s"
"""The first byte of a stored vector that is preceded by its seconds."""
_SECONDS = Struct("<d")

UNREADABLE = -1
"""Stored in place of a text's tokens if the endpoint did not report a number."""


class OpenAIEmbedder(Embedder):
    """Embeds texts at an endpoint, with vectors of length 1.

    A text that the same model embedded before is read from the cache. A text that another caller
    has requested is waited for, and not sent twice. A blank text gets the zero vector.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        width: int | None,
        cache: ReplyCache,
        origin: str,
        *,
        batch_size: int = MAX_TEXTS,
    ) -> None:
        """`width` requests shorter vectors (`dimensions`); None keeps the model's own width. One
        request contains up to `batch_size` texts.
        """
        self.name = f"{model}/{width}" if width else model
        self.width = width or 0
        self._endpoint, self._model, self._origin = endpoint, model, origin
        self._requested, self._batch_size = width, batch_size
        self._calls = CachedBatches(
            cache,
            origin,
            size=batch_size,
            at_once=max(BATCHES_AT_ONCE, endpoint.settings.max_concurrency),
            is_sound=self._is_sound,
            call=self._ask,
            lose_store=endpoint.lose_store,
        )
        self._other_widths: Counter[int] = Counter()

    @classmethod
    def from_settings(cls, settings: EmbedderConfig, network: Network) -> Self:
        if not settings.model or not settings.base_url:
            raise UserError("embedder=openai needs embedder.model and embedder.base_url")

        reach = endpoint_settings(settings, "embedder=openai", EMBEDDER_LIMIT)
        endpoint, cache = network.endpoint(reach), network.cache("embeddings")
        return cls(
            endpoint,
            settings.model,
            settings.width,
            cache,
            network.origin,
            batch_size=settings.batch_size,
        )

    async def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        # Most endpoints refuse a blank text.
        keys = {text: self._key(text) for text in texts if text.strip()}
        entries = await self._calls.entries(keys)
        self._meter(entries, keys)

        vectors: dict[str, bytes] = {}
        for text, entry in entries.items():
            vectors[text], seconds = read_timed_value(entry.value)
            current_ledger().add_duration(Role.EMBED, seconds)

        widths = {len(vector) // 4 for vector in vectors.values()}
        if len(widths) > 1:
            raise ModelError(
                f"the vectors have different widths: {', '.join(map(str, sorted(widths)))} numbers"
            )

        self.width = self.width or next(iter(widths), 0)
        # Of four bytes per number, all 0.
        blank = bytes(4 * self.width)
        rows = [np.frombuffer(vectors.get(text, blank), dtype=np.float32) for text in texts]
        if not rows:
            return np.zeros((0, self.width), dtype=np.float32)

        return np.stack(rows)

    def _key(self, text: str) -> str:
        return content_key(
            {"endpoint": self._endpoint.settings.base_url, "embedder": self.name, "text": text}
        )

    async def _ask(self, texts: Sequence[str]) -> dict[str, tuple[bytes, int | None]]:
        """The vectors of texts in one request, with their shares of the reported tokens."""
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._requested:
            body["dimensions"] = self._requested

        explain = partial(RefusedRequestError.with_hint, role="embedder")
        try:
            reply = await self._endpoint.post(
                "/embeddings", body, lambda sent: self._read(sent, len(texts)), explain=explain
            )
        except RefusedRequestError as error:
            raise explain(error) from error

        parts = shares(reply.value.tokens, texts)
        if ODD_USAGE in reply.value.notes:
            parts = dict.fromkeys(texts, UNREADABLE)

        seconds = reply.latency_s / len(texts)
        return {
            text: (timed_value(vector.tobytes(), seconds), parts.get(text))
            for text, vector in zip(texts, reply.value.vectors, strict=True)
        }

    def _is_sound(self, value: bytes) -> bool:
        """Whether a stored vector is usable. The first sound vector decides the model's width."""
        vector, _ = read_timed_value(value)
        if not sound_vector(vector, self.width):
            return False

        self.width = self.width or len(vector) // 4
        return True

    def _read(self, reply: Mapping[str, Any], count: int) -> VectorsReply:
        """The vectors of a reply. The first sound reply decides the width of all others.

        If several replies in a row have another width, the first reply was wrong: its texts are
        then requested again.
        """
        sound = read_vectors(reply, count, self._requested)
        width = sound.vectors.shape[1]
        if self.width and width != self.width:
            self._other_widths[width] += 1
            if self._other_widths[width] < AGREEING:
                raise UnsoundReplyError(
                    f"the vectors have {width} numbers, but this model's have {self.width}"
                )
        else:
            # Only consecutive replies count: a reply of the usual width resets the count.
            self._other_widths.clear()

        self.width = width
        return sound

    def _meter(self, entries: Mapping[str, CachedEntry], keys: Mapping[str, str]) -> None:
        """Meters the tokens of texts, embedded now or before: their shares of the reported tokens,
        else our own counts.

        Calls are counted as if the texts were sent in full batches, so that a resumed run counts as
        many calls as one that was not interrupted.
        """
        kinds: dict[tuple[bool, bool], list[RequestTokens]] = {}
        for text, entry in entries.items():
            estimated = entry.tokens is None or entry.tokens < 0
            if entry.tokens == UNREADABLE:
                current_ledger().repairs[ODD_USAGE] += 1

            tokens = count_tokens(text) if estimated else entry.tokens or 0
            kind = kinds.setdefault((estimated, entry.origin != self._origin), [])
            kind.append((keys[text][:DIGITS], tokens, 0, 0))

        for (estimated, cached), requests in sorted(kinds.items()):
            current_ledger().usages.append(
                Usage(
                    role=Role.EMBED,
                    model=self._model,
                    provider=provider_of(self._endpoint.settings.base_url),
                    prompt_tokens=sum(tokens for _, tokens, _, _ in requests),
                    completion_tokens=0,
                    estimated=estimated,
                    cached=cached,
                    calls=-(-len(requests) // self._batch_size),
                    requests=tuple(requests),
                )
            )


def timed_value(vector: bytes, seconds: float) -> bytes:
    """A vector as the cache stores it, with its share of the time that its request took."""
    return TIMED + _SECONDS.pack(seconds) + vector


def read_timed_value(value: bytes) -> tuple[bytes, float | None]:
    """A vector of the cache and its seconds; None for a vector that was stored without them."""
    # A plain vector has four bytes per number: its length is never that of a vector with seconds.
    if len(value) % 4 != len(TIMED) or not value.startswith(TIMED):
        return value, None

    start = len(TIMED) + _SECONDS.size
    (seconds,) = _SECONDS.unpack(value[len(TIMED) : start])
    if not 0 <= seconds < float("inf"):
        return value[start:], None

    return value[start:], seconds


def shares(reported: int | None, texts: Sequence[str]) -> dict[str, int]:
    """The tokens that an endpoint reported for a request, divided among its texts by their length.

    The shares add up to the reported number. Empty if nothing was reported.
    """
    if reported is None:
        return {}

    weights = [max(1, count_tokens(text)) for text in texts]
    whole, before, parts = sum(weights), 0, {}
    for text, weight in zip(texts, weights, strict=True):
        parts[text] = reported * (before + weight) // whole - reported * before // whole
        before += weight

    return parts
