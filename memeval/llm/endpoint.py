"""One OpenAI-compatible endpoint: one client, one limit, one way to retry, shared by every model
and embedder behind the same address.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from memeval.errors import ModelError
from memeval.llm.faults import Setback, of_connection, of_status
from memeval.llm.metering import current_ledger
from memeval.llm.outage import Backoff, Clock, Outage, Say, Sleep
from memeval.llm.places import Places
from memeval.llm.refusals import RefusedRequestError
from memeval.llm.reply import CutReplyError, FilteredReplyError, UnsoundReplyError, parse

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

UNSOUND_TRIES = 6
"""Tries of a call whose replies under status 200 are unsound: they may never become sound."""
LEAST_TRIES = 3
"""A call that fails while others are answered is tried as often, however slow the tries are."""
MOST_BYTES = 64 * 2**20
"""A larger body is not a reply."""
MOST_ERROR_BYTES = 2**20
"""More of the body of a refusal is not read."""


@dataclass(frozen=True)
class EndpointSettings:
    """How an address is reached."""

    base_url: str
    api_key: str = field(repr=False)
    max_concurrency: int
    timeout_s: float
    """Limit of one whole try, in seconds: from the connection to the last byte."""
    patience_s: float
    """How long is tried again while nothing is answered, in seconds."""
    max_retries: int | None = None
    """Tries after the first, at most; None leaves it to the patience."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further headers of each request; they replace those of the same name."""


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """A sound reply of an endpoint."""

    value: T
    """What was read from it."""
    latency_s: float
    """Of the try that succeeded."""
    wait_s: float
    """Sum of the waits between tries."""


def as_object(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """For `post`: any JSON object is taken for sound."""
    return reply


class Endpoint:
    """Posts JSON.

    At most `max_concurrency` requests are under way at once; a wait between tries holds no place.

    In an outage, and where the endpoint asks for fewer calls, all callers wait together, and one
    after the other tries.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        *,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
        seed: int = 0,
        say: Say | None = None,
        places: Places | None = None,
    ) -> None:
        """`say` gets what is waited for.

        `places` are those of the home, shared with other processes; without them the limit is this
        object's own.
        """
        self.settings = settings
        self._shared_places = places
        self._sleep, self._clock = sleep, clock
        self._backoff = Backoff(seed)
        self._outage = Outage(
            settings.base_url,
            settings.patience_s,
            clock=clock,
            sleep=sleep,
            backoff=self._backoff,
            say=say,
        )
        self._places = places or asyncio.Semaphore(settings.max_concurrency)
        self._client: httpx2.AsyncClient | None = None

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Mapping[str, Any]], T],
        *,
        most_bytes: int = MOST_BYTES,
    ) -> Reply[T]:
        """What `read` makes of the reply to `body`.

        Where it raises `UnsoundReplyError`, the call is made again.

        Raises `ModelError` when refused, when the patience is over, or when no reply was sound.
        """
        content, call, ledger = _encode(body), _Call(), current_ledger()
        while True:
            entered = self._clock()
            probe = await self._outage.enter()
            paused = self._clock() - entered
            call.waited_s += paused
            ledger.idle_s += paused

            try:
                queued = time.perf_counter()
                async with self._places:
                    started = time.perf_counter()
                    ledger.idle_s += started - queued
                    ledger.place_s += started - queued
                    if self._outage.shut and not probe:  # since it queued for a place
                        continue

                    sent_at = self._clock()
                    outcome = await self._try(path, content, read, most_bytes)
                    latency = time.perf_counter() - started

                if not isinstance(outcome, Setback):
                    self._outage.succeeded()
                    return Reply(outcome, latency, call.waited_s)

                wait = self._after(outcome, call, sent_at=sent_at, probe=probe)
            except (CutReplyError, FilteredReplyError):
                self._outage.succeeded()
                raise
            finally:
                if probe:
                    self._outage.leave()

            if wait:
                await self._sleep(wait)
                call.waited_s += wait
                ledger.idle_s += wait

    def _after(self, setback: Setback, call: _Call, *, sent_at: float, probe: bool) -> float:
        """Seconds to wait before the next try, beside what the outage asks for.

        Raises `ModelError` where there is none.
        """
        call.tries += 1
        call.since = sent_at if call.since is None else call.since
        call.unsound += setback.unsound
        passing = setback.passing and not (setback.only_at_start and not self._outage.answered)
        if not passing:
            raise self._given_up(setback, call)

        if probe or not setback.unsound:
            self._outage.failed(setback, sent_at=sent_at, probe=probe)

        elapsed = self._clock() - call.since
        most, patience = self.settings.max_retries, self.settings.patience_s
        over = (
            self._outage.exhausted
            or (elapsed >= patience and (call.tries >= LEAST_TRIES or not patience))
            or call.unsound >= UNSOUND_TRIES
            or (most is not None and call.tries > most)
        )
        if over:
            raise self._given_up(setback, call)

        left = max(patience - elapsed, 0.0)
        if setback.unsound:
            return self._backoff.unsound_s(call.unsound - 1, left)
        if self._outage.shut:
            return 0.0

        return self._backoff.wait_s(call.tries - 1, setback.retry_after_s, left)

    def _given_up(self, setback: Setback, call: _Call) -> ModelError:
        since = call.since
        if setback.passing and self._outage.since is not None and since is not None:
            since = min(since, self._outage.since)

        waited = 0.0 if since is None else self._clock() - since
        lasted = f" over {waited:.0f} s" if waited >= 1 else ""

        tried = ""
        if call.tries > 1:
            tried = f" (tried {call.tries} times{lasted})"
        elif lasted and setback.passing:
            tried = f" (for {waited:.0f} s)"

        message = f"{setback.what}{tried}"
        if setback.filtered:
            return FilteredReplyError(message)
        if setback.refused:
            return RefusedRequestError(message, setback.parameter)

        return UnsoundReplyError(message) if setback.unsound else ModelError(message)

    async def _try(
        self, path: str, content: bytes, read: Callable[[Mapping[str, Any]], T], most_bytes: int
    ) -> T | Setback:
        """One try, from the connection to the last byte."""
        client = self.client()  # made before the time begins to count: its imports take a second
        deadline = asyncio.timeout(self.settings.timeout_s)

        try:
            async with deadline:
                status, headers, body = await self._send(client, path, content, most_bytes)
        except Exception as error:
            # The transport turns a cancellation into an error of its own: it may come from our
            # deadline, or from the caller.
            if _is_cancelled() and not deadline.expired():
                raise asyncio.CancelledError from error
            if deadline.expired() or _is_timeout(error):
                return Setback(f"no whole reply within {self.settings.timeout_s:g} s", passing=True)

            return of_connection(
                error, urlsplit(self.settings.base_url).hostname or self.settings.base_url
            )

        if status >= 300:
            return of_status(status, headers, body)

        try:
            if len(body) > most_bytes:
                raise UnsoundReplyError(f"the reply is larger than {most_bytes / 2**20:.0f} MiB")

            return read(parse(body, headers.get("content-type", "")))
        except UnsoundReplyError as error:
            return Setback(str(error), passing=True, unsound=True)

    async def _send(
        self, client: httpx2.AsyncClient, path: str, content: bytes, most_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of a reply.

        Of a body that is too large, no more than the first byte too many.
        """
        request = client.build_request("POST", self._address(path), content=content)
        response = await client.send(request, stream=True)

        try:
            most = most_bytes if response.status_code < 300 else MOST_ERROR_BYTES
            chunks: list[bytes] = []
            size = 0

            async for chunk in response.aiter_bytes():
                chunks.append(chunk)
                size += len(chunk)
                if size > most:
                    break

            return response.status_code, response.headers, b"".join(chunks)
        finally:
            await response.aclose()

    def _address(self, path: str) -> str:
        return self.settings.base_url.rstrip("/") + path

    def limit(self, max_concurrency: int) -> None:
        """Lowers the number of requests that may be under way at once.

        Called before the first of them.
        """
        self.settings = replace(self.settings, max_concurrency=max_concurrency)
        if self._shared_places is not None:
            self._shared_places.lower(max_concurrency)
        else:
            self._places = asyncio.Semaphore(max_concurrency)

    def client(self) -> httpx2.AsyncClient:
        """The client, made when it is first asked for.

        It follows no redirect: prompts go to the address that was given.
        """
        if self._client is None:
            from httpx2 import Limits
            from openai import DefaultAioHttpClient

            connections = self.settings.max_concurrency
            self._client = DefaultAioHttpClient(
                headers={
                    "Authorization": f"Bearer {self.settings.api_key}",
                    "Content-Type": "application/json",
                    "Accept": "application/json",
                    "User-Agent": "memeval",
                    **self.settings.headers,
                },
                timeout=self.settings.timeout_s,
                limits=Limits(max_connections=connections, max_keepalive_connections=connections),
                follow_redirects=False,
            )

        return self._client

    async def aclose(self) -> None:
        if self._shared_places is not None:
            self._shared_places.close()

        if self._client is not None:
            await self._client.aclose()
            self._client = None


@dataclass(slots=True)
class _Call:
    """What became of a call's tries."""

    tries: int = 0
    unsound: int = 0
    since: float | None = None
    """When the first try that failed was sent."""
    waited_s: float = 0.0


def _encode(body: Mapping[str, Any]) -> bytes:
    """JSON in UTF-8; a half of a character, which UTF-8 can't hold, as U+FFFD."""
    text = json.dumps(dict(body), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _is_cancelled() -> bool:
    """Whether the task under way was asked to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _is_timeout(error: BaseException) -> bool:
    """Whether the time was over; the transport calls any broken connection a timeout, too."""
    return any(
        isinstance(cause, TimeoutError) and cause.errno is None
        for cause in (error, error.__cause__)
    )
