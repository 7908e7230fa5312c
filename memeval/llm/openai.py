"""A model behind an OpenAI-compatible endpoint, with the response cache before it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memeval.llm.cache import Cache, content_key
from memeval.llm.contract import ChatPrompt, Completion, LanguageModel, Prompt
from memeval.llm.endpoint import Endpoint
from memeval.llm.flight import Claims, Flights
from memeval.llm.metering import current_ledger
from memeval.llm.prices import provider_of
from memeval.llm.reply import read_chat, stored_chat
from memeval.records import Role, Usage
from memeval.redaction import without_known

_Entry = tuple[dict[str, Any], bool]
"""A reply as the cache keeps it, and whether another run paid for it."""

_REASONING = re.compile(r"^(o\d|gpt-5)")


@dataclass(frozen=True)
class Sampling:
    """What is asked of the model with every prompt."""

    model: str
    temperature: float | None
    """None leaves it to the endpoint."""
    max_tokens: int
    send_seed: bool = True
    """Whether the repeat's seed is sent along; some endpoints refuse the parameter."""


class OpenAIModel(LanguageModel):
    """Completes prompts at an endpoint; a prompt asked before (same model, words, sampling, seed
    and scope) is answered from the cache."""

    def __init__(self, endpoint: Endpoint, sampling: Sampling, cache: Cache, origin: str) -> None:
        """`origin` names the run: replies that this very run paid for earlier, before a crash,
        still count as billed to it."""
        self.name = sampling.model
        self._endpoint, self._sampling, self._cache, self._origin = (
            endpoint,
            sampling,
            cache,
            origin,
        )
        self._provider = provider_of(endpoint.settings.base_url)
        self._flights = Flights[_Entry](Claims.beside(cache.path))

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        ledger = current_ledger()
        body = self._body(prompt, seed)
        key = content_key(
            {
                "endpoint": self._endpoint.settings.base_url,
                "seed": seed,
                "scope": ledger.scope,
                **body,
            }
        )
        entry, cached = await self._flights.once(
            key,
            look=lambda: self._stored(key),
            ask=lambda: self._asked(key, body),
        )
        usage = Usage(
            role=role, model=self.name, provider=self._provider, cached=cached, **entry["usage"]
        )
        ledger.wait_s += 0.0 if cached else entry["wait_s"]

        return Completion(
            text=entry["text"],
            usage=usage,
            latency_s=entry["latency_s"],
            retry_wait_s=entry["wait_s"],
            finish_reason=entry["finish_reason"],
            raw=entry["raw"],
            notes=tuple(entry["notes"]),
            key=key,
        )

    def _stored(self, key: str) -> _Entry | None:
        """The sound reply in the cache, and whether another run paid for it."""
        stored = self._cache.get(key)
        entry = stored_chat(stored.value) if stored is not None else None
        if stored is None or entry is None:
            return None

        current_ledger().replayed_s += entry["latency_s"]

        return entry, stored.origin != self._origin

    async def _asked(self, key: str, body: Mapping[str, Any]) -> _Entry:
        """The reply of the endpoint, kept in the cache.

        A filtered one is not kept: it is asked for again.
        """
        entry = await self._ask(body)
        if entry["finish_reason"] == "content_filter":
            return entry, False

        # What lies there already is unsound, else it had been taken.
        put = self._cache.put if self._cache.get(key) is None else self._cache.replace
        put(key, json.dumps(entry, ensure_ascii=False).encode(), self._origin)

        return entry, False

    def _body(self, prompt: Prompt, seed: int) -> dict[str, Any]:
        sampling = self._sampling
        reasoning = self._provider == "openai" and _REASONING.match(sampling.model)
        body: dict[str, Any] = {
            "model": sampling.model,
            "messages": [dict(message) for message in prompt.messages()],
        }
        limits = prompt.limits()
        temperature = sampling.temperature if limits.temperature is None else limits.temperature

        if reasoning:
            # Thinking counts against this limit: a protocol's ten tokens would leave no reply.
            body["max_completion_tokens"] = sampling.max_tokens
        else:
            body["max_tokens"] = limits.max_tokens or sampling.max_tokens
            if temperature is not None:
                body["temperature"] = temperature

        if sampling.send_seed:
            body["seed"] = seed
        if isinstance(prompt, ChatPrompt):
            body |= prompt.options
        return body

    async def _ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        reply = await self._endpoint.post(
            "/chat/completions", body, lambda sent: read_chat(sent, body["messages"])
        )
        chat = reply.value
        return {
            "text": without_known(chat.text),
            "raw": without_known(chat.raw) if chat.raw is not None else None,
            "finish_reason": chat.finish_reason,
            "notes": list(chat.notes),
            "usage": dict(chat.usage),
            "latency_s": reply.latency_s,
            "wait_s": reply.wait_s,
        }

    def forget(self, completion: Completion) -> None:
        if completion.key:
            self._cache.delete(completion.key)

    async def aclose(self) -> None:
        await self._endpoint.aclose()
