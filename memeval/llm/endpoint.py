"""One OpenAI-compatible endpoint: one client, one limit, one way to retry, shared by every model and embedder behind the same address."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from memeval.errors import ModelError
from memeval.llm.metering import current_ledger
from memeval.llm.places import Places
from memeval.redaction import place_of, redacted
from memeval.shown import one_line

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

LONGEST_WAIT_S = 60.0
"""No single wait between two tries is longer, whatever Retry-After asks for."""
FIRST_WAIT_S = 0.5


@dataclass(frozen=True)
class EndpointSettings:
    """How an address is reached."""

    base_url: str
    api_key: str = field(repr=False)
    max_concurrency: int
    timeout_s: float
    """Limit of one try, in seconds."""
    max_retries: int
    """Tries after the first."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further headers of each request; they replace those of the same name."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A sound JSON reply of an endpoint."""

    body: Mapping[str, Any]
    latency_s: float
    """Of the try that succeeded."""
    wait_s: float
    """Sum of the waits between tries."""


class Endpoint:
    """Posts JSON. At most `max_concurrency` requests are under way at once; a wait between tries holds no place."""

    def __init__(
        self,
        settings: EndpointSettings,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        seed: int = 0,
        places: Places | None = None,
    ) -> None:
        """`places` are those of the home, shared with other processes; without them the limit is this object's own."""
        self.settings = settings
        self._shared_places = places
        self._sleep = sleep
        self._jitter = random.Random(seed)
        self._places = places or asyncio.Semaphore(settings.max_concurrency)
        self._client: AsyncOpenAI | None = None

    async def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """The reply to `body`. Raises `ModelError` when refused, when retries ran out, or when the reply is not JSON."""
        waited, ledger = 0.0, current_ledger()
        for attempt in range(self.settings.max_retries + 1):
            queued = time.perf_counter()
            async with self._places:
                started = time.perf_counter()
                ledger.idle_s += started - queued
                outcome = await self._try(path, body)
                latency = time.perf_counter() - started
            if not isinstance(outcome, _Setback):
                return Reply(outcome, latency, waited)
            if attempt == self.settings.max_retries or not outcome.passing:
                tries = f" (tried {attempt + 1} times)" if attempt else ""
                raise ModelError(f"{outcome.what}{tries}")
            wait = self._wait_s(attempt, outcome.retry_after_s)
            waited += wait
            ledger.idle_s += wait
            await self._sleep(wait)
        raise AssertionError("unreachable: the loop returns or raises")

    async def _try(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any] | _Setback:
        import openai
        from httpx2 import Response

        try:
            response: Response = await self.client().post(path, cast_to=Response, body=dict(body))
        except openai.APITimeoutError:
            return _Setback(f"no reply within {self.settings.timeout_s:g} s", passing=True)
        except openai.APIConnectionError as error:
            return _Setback(f"connection failed: {error.__cause__ or error}", passing=True)
        except openai.APIStatusError as error:
            return _setback_of(error)
        try:
            parsed = json.loads(response.content)
        except ValueError:
            return _Setback("the reply is not JSON", passing=False)
        return parsed if isinstance(parsed, dict) else _Setback("the reply is not a JSON object", passing=False)

    def _wait_s(self, attempt: int, retry_after_s: float | None) -> float:
        """Full jitter over an exponentially growing span, never below what the endpoint asked for."""
        span = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**attempt)
        drawn = self._jitter.uniform(0, span)
        return min(LONGEST_WAIT_S, drawn if retry_after_s is None else retry_after_s + 0.1 * drawn)

    def limit(self, max_concurrency: int) -> None:
        """Lowers the number of requests that may be under way at once; called before the first of them."""
        self.settings = replace(self.settings, max_concurrency=max_concurrency)
        if self._shared_places is not None:
            self._shared_places.lower(max_concurrency)
        else:
            self._places = asyncio.Semaphore(max_concurrency)

    def client(self) -> AsyncOpenAI:
        if self._client is None:
            import openai

            self._client = openai.AsyncOpenAI(
                api_key=self.settings.api_key,
                base_url=self.settings.base_url,
                timeout=self.settings.timeout_s,
                max_retries=0,
                default_headers=dict(self.settings.headers),
                http_client=openai.DefaultAioHttpClient(
                    timeout=self.settings.timeout_s,
                    limits=_limits(self.settings.max_concurrency),
                    base_url=self.settings.base_url,
                    follow_redirects=False,  # prompts go to the address that was given, and to no other
                ),
            )
        return self._client

    async def aclose(self) -> None:
        if self._shared_places is not None:
            self._shared_places.close()
        if self._client is not None:
            await self._client.close()
            self._client = None


@dataclass(frozen=True, slots=True)
class _Setback:
    what: str
    passing: bool
    retry_after_s: float | None = None


def _setback_of(error: Any) -> _Setback:
    status: int = error.status_code
    if 300 <= status < 400:
        place = place_of(error.response.headers.get("location", "")) or "another path"
        return _Setback(f"HTTP {status}: the endpoint redirects to {one_line(place)}: prompts are not sent there", passing=False)
    code = getattr(error, "code", None)
    passing = (status in (408, 409, 429) or status >= 500) and code != "insufficient_quota"
    body = error.body if isinstance(error.body, dict) else {}
    message = str(body.get("message") or error.message).strip().splitlines() or [""]
    return _Setback(f"HTTP {status}: {redacted(message[0])[:300]}", passing, _retry_after_s(error.response.headers))


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that `Retry-After` (or its millisecond variant) asks for, None where it says nothing that can be read."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    stamp = headers.get("retry-after")
    if stamp:
        from email.utils import parsedate_to_datetime

        try:
            return max(0.0, parsedate_to_datetime(stamp).timestamp() - time.time())
        except ValueError:
            return None
    return None


def _limits(connections: int) -> httpx2.Limits:
    from httpx2 import Limits

    return Limits(max_connections=connections, max_keepalive_connections=connections)
