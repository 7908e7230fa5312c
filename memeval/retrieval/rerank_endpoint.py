"""Any cross-encoder behind a `POST /rerank` as Jina, Cohere, Voyage, vLLM and others serve it, with the response cache before it."""

from __future__ import annotations

import asyncio
import atexit
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from memeval.config.checks import check_address
from memeval.config.paths import cache_dir
from memeval.llm.cache import Cache, content_key
from memeval.llm.endpoint import Endpoint, EndpointSettings, Reply
from memeval.llm.flight import Claims, Flights, lock_folder
from memeval.llm.keys import key_of
from memeval.llm.metering import Ledger, current_ledger, metered
from memeval.llm.places import Places
from memeval.llm.prices import provider_of
from memeval.llm.reply import NOTES, RankingReply, read_ranking, stored_ranking
from memeval.llm.tokens import count_tokens
from memeval.records import Role, Usage

_Entry = tuple[dict[str, Any], bool]
"""A ranking as the cache keeps it, and whether another run paid for it."""

PATH = "/rerank"
MAX_CONCURRENCY, TIMEOUT_S, PATIENCE_S = 16, 60.0, 300.0
"""How an address is reached: requests at once, seconds a try, seconds of trying again."""


class EndpointReranker:
    """Asks for `{model, query, documents, top_n}` and reads `{results: [{index, relevance_score}]}`.

    A request made before (same address, model, query and documents) is answered from the response cache; a cross-encoder draws nothing, so
    neither the seed nor the question's id is part of the key. The tokens land in the ledger under the role `embed`: a call that retrieval
    makes and that writes no text. `usage.total_tokens` where the endpoint says so, else counted here, the query with each document.
    A blank query and an empty list are sent nowhere: the first ranking stands.
    """

    def __init__(
        self, corpus: Sequence[str], address: str, model: str, key_env: str, origin: str = ""
    ) -> None:
        self._corpus, self._model, self._origin = corpus, model, origin
        check_address(
            "system.rerank_url",
            address,
            "the key comes from the environment:  export RERANK_API_KEY=...",
        )
        address = address.rstrip("/").removesuffix(PATH)
        key = key_of(
            key_env, address, "system.rerank=endpoint", "or offline:  system.rerank=lexical"
        )
        self._settings = EndpointSettings(address, key, MAX_CONCURRENCY, TIMEOUT_S, PATIENCE_S)
        self._reach: _Reach | None = None
        self._flights = Flights[_Entry](Claims.beside(cache_dir() / "responses.sqlite"))

    async def reorder(
        self, query: str, candidates: Sequence[tuple[int, float]]
    ) -> list[tuple[int, float]]:
        if not candidates or not query.strip():
            return list(candidates)
        body = {
            "model": self._model,
            "query": query,
            "documents": [self._corpus[position] for position, _ in candidates],
        }
        scores = await self._scores({**body, "top_n": len(candidates)})
        scored = [
            (position, score) for (position, _), score in zip(candidates, scores, strict=True)
        ]
        return sorted(scored, key=lambda pair: -pair[1])

    async def _scores(self, body: Mapping[str, Any]) -> list[float]:
        if self._reach is None:
            self._reach = _enter(self._settings)
        ledger, reach = current_ledger(), self._reach
        key = content_key({"endpoint": self._settings.base_url, "path": PATH, **body})
        entry, cached = await self._flights.once(
            key,
            look=lambda: self._stored(reach, key, len(body["documents"])),
            ask=lambda: self._asked(reach, key, body),
        )
        ledger.wait_s += 0.0 if cached else entry["wait_s"]
        ledger.mended.update(note for note in entry.get("notes", ()) if note in NOTES)
        provider = provider_of(self._settings.base_url)
        ledger.usages.append(
            Usage(
                Role.EMBED,
                self._model,
                provider,
                entry["tokens"],
                0,
                estimated=entry["estimated"],
                cached=cached,
            )
        )
        scores: list[float] = entry["scores"]
        return scores

    def _stored(self, reach: _Reach, key: str, documents: int) -> _Entry | None:
        """The sound ranking in the cache, and whether another run paid for it."""
        stored = reach.cache.get(key)
        entry = stored_ranking(stored.value, documents) if stored is not None else None
        if stored is None or entry is None:
            return None

        current_ledger().replayed_s += entry["latency_s"]
        return entry, stored.origin != self._origin or not self._origin

    async def _asked(self, reach: _Reach, key: str, body: Mapping[str, Any]) -> _Entry:
        """The ranking of the endpoint, kept in the cache."""
        put = reach.cache.put if reach.cache.get(key) is None else reach.cache.replace
        entry = await self._ask(reach, body)
        put(key, json.dumps(entry).encode(), self._origin)
        return entry, False

    async def _ask(self, reach: _Reach, body: Mapping[str, Any]) -> dict[str, Any]:
        reply = await reach.post(body)
        ranking = reply.value
        counted = sum(
            count_tokens(body["query"]) + count_tokens(text) for text in body["documents"]
        )
        return {
            "scores": list(ranking.scores),
            "tokens": counted if ranking.tokens is None else ranking.tokens,
            "estimated": ranking.tokens is None,
            "latency_s": reply.latency_s,
            "wait_s": reply.wait_s,
            "notes": list(ranking.notes),
        }

    def close(self) -> None:
        if self._reach is not None:
            self._reach.leave()
        self._reach = None


@dataclass
class _Reach:
    """An address as this process reaches it, shared by all rerankers that ask there."""

    endpoint: Endpoint
    cache: Cache
    users: int = 0

    async def post(self, body: Mapping[str, Any]) -> Reply[RankingReply]:
        """The reply, asked for on the loop that the connections belong to."""
        with metered(Ledger()) as inner:  # a ledger belongs to one thread
            asking = self.endpoint.post(
                PATH, body, lambda sent: read_ranking(sent, len(body["documents"]))
            )
            waiting = asyncio.run_coroutine_threadsafe(asking, _loop())
        try:
            return await asyncio.wrap_future(waiting)
        finally:
            current_ledger().idle_s += inner.idle_s

    def leave(self) -> None:
        """The last one out closes the connections, without waiting for it."""
        with _lock:
            self.users -= 1
            if self.users:
                return
            _open.pop(self.endpoint.settings.base_url)
        self.cache.close()
        asyncio.run_coroutine_threadsafe(self.endpoint.aclose(), _loop())


_open: dict[str, _Reach] = {}
_lock = threading.Lock()


def _enter(settings: EndpointSettings) -> _Reach:
    with _lock:
        reach = _open.get(settings.base_url)
        if reach is None:
            replies = Cache(cache_dir() / "responses.sqlite")
            locks = lock_folder(replies.path)
            places = Places(locks, settings.base_url, settings.api_key, settings.max_concurrency)
            reach = _open[settings.base_url] = _Reach(Endpoint(settings, places=places), replies)
        reach.users += 1
    return reach


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """A loop of the connections' own, in a thread: they can then be closed from a plain method, after the caller's loop is done with."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="memeval-rerank", daemon=True)
    thread.start()

    def stop() -> None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    atexit.register(stop)
    return loop
