"""One OpenAI-compatible endpoint: one request limit and one retry policy for all its models."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from memeval.errors import ModelError, StorageError
from memeval.llm.breaker import Breaker
from memeval.llm.budget import Amount, Budget, amount_of, most_of
from memeval.llm.faults import (
    FaultKind,
    Setback,
    connection_setback,
    status_setback,
    unsound_setback,
)
from memeval.llm.load import Load
from memeval.llm.metering import current_ledger
from memeval.llm.outage import Backoff, Clock, Outage, Say, Sleep
from memeval.llm.refusals import RefusedRequestError
from memeval.llm.reply.body import CutReplyError, FilteredReplyError, UnsoundReplyError, parse
from memeval.llm.slots import Slot, Slots
from memeval.llm.transport import Transport, encode, time_limit
from memeval.results.prices import provider_of

T = TypeVar("T")
Attempt = Callable[[], Awaitable[T | Setback]]
"""One try of a call."""

UNSOUND_TRIES = 6
"""Maximum attempts of a call with unsound replies under status 200: they may never be sound."""
ACCEPTED = 202
"""The status of a request that the server has accepted but not yet carried out."""
NOTHING = Amount()
_ERRORS: Mapping[FaultKind, type[ModelError]] = {
    FaultKind.FILTERED: FilteredReplyError,
    FaultKind.UNSOUND: UnsoundReplyError,
}
MIN_TRIES = 3
"""Minimum tries of a failing call, however slow, while other calls are answered."""
BY_CLIENT = ("/embeddings",)
"""Paths called through openai's own client; chat calls bypass it, at a quarter of the CPU time."""
MAX_BYTES = 64 * 2**20
"""Maximum bytes of a reply's body; a larger reply counts as unsound."""


@dataclass(frozen=True)
class EndpointSettings:
    """Settings of the requests to a URL."""

    base_url: str
    api_key: str = field(repr=False)
    max_concurrency: int
    timeout_s: float
    """Time limit of one whole try, in seconds, from the connection to the last byte."""
    patience_s: float
    """Maximum time of retries while no call is answered, in seconds."""
    max_retries: int | None = None
    """Maximum tries after the first; None leaves it to the patience."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further headers of each request. They replace memeval's own of the same name."""
    api_version: str | None = None
    """Azure's `api-version`; None for any other provider."""
    pages_are_final: bool = False
    """Whether a web page or an empty body with status 200 ends a call. Otherwise it counts as the
    reply of a failing gateway, and the call is retried.
    """
    takes_accepted: bool = True
    """Whether 202 is a reply. Some contracts require 200."""


class EndpointReply(Struct, Generic[T], frozen=True):
    """A sound reply of an endpoint."""

    value: T
    """The result of `read`."""
    latency_s: float
    """Latency of the successful try."""
    wait_s: float
    """Sum of the waits between tries."""
    setback: str | None = None
    """The setback of the last failed try, if there was one."""


def as_object(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """A `read` for `post` that accepts any JSON object."""
    return reply


class _Call(Struct):
    """The tries of one call so far."""

    tries: int = 0
    unsound: int = 0
    since: float | None = None
    """When the first try that failed was sent."""
    waited_s: float = 0.0
    setback: Setback | None = None
    """The setback of the last failed try."""
    budget: Budget | None = None
    most: Amount = NOTHING
    """The maximum cost of a try."""
    holds: bool = False
    """Whether the budget has reserved `most` for a try."""
    is_under_way: bool = False
    """Whether a try was sent and has not ended."""

    async def begin_try(self) -> None:
        """Waits until the budget covers the maximum cost of an attempt."""
        if self.budget is not None and not self.holds:
            await self.budget.enter(self.most)
            self.holds = True

    def end_try(self, spent: Amount) -> None:
        """Reports the cost of an attempt, unless reported already."""
        if self.budget is not None and self.holds:
            self.holds = False
            self.budget.leave(self.most, spent)


class Endpoint:
    """Posts JSON, up to `max_concurrency` requests at a time; in an outage all callers wait."""

    def __init__(
        self,
        settings: EndpointSettings,
        *,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
        say: Say | None = None,
        slots: Slots | None = None,
        budget: Budget | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        """`say` reports long waits; without `slots` the limit applies only to this object."""
        self.settings = settings
        self.load = Load(settings.max_concurrency)
        self._budget, self._provider = budget, provider_of(settings.base_url)
        self._breaker = breaker or Breaker()
        self._sleep, self._clock = sleep, clock
        self._backoff = Backoff()
        self._outage = Outage(
            settings.base_url,
            settings.patience_s,
            clock=clock,
            sleep=sleep,
            backoff=self._backoff,
            say=say,
        )
        self._slots = slots or Slots()
        self._slots.limit(self, settings.max_concurrency)
        self._transports: dict[bool, Transport] = {}
        """The open transports, by whether openai's client sends over them."""

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Mapping[str, Any]], T],
        *,
        most_bytes: int = MAX_BYTES,
        explain: Callable[[RefusedRequestError], ModelError] | None = None,
    ) -> EndpointReply[T]:
        """The result of `read` on the reply to `body`, which is sent again after
        `UnsoundReplyError`.

        `explain` adds a hint to a refusal, for the message of a run that it stops. Raises
        `ModelError` if refused, out of patience, or without a sound reply.
        """
        # Encoded once: all attempts send the same bytes, whose number also bounds the cost of an
        # attempt.
        content = encode(body)
        most = NOTHING if self._budget is None else most_of(body, len(content), self._provider)
        call = _Call(budget=self._budget, most=most)
        address, asked = self.settings.base_url, f"{path} {body.get('model', '')}"
        await self._breaker.check_connections()
        try:
            reply = await self._post(lambda: self._try(path, content, read, most_bytes), call)
            if self._budget is not None:
                call.end_try(amount_of(body, reply.value, self._provider, most))
        except (CutReplyError, FilteredReplyError):
            self._outage.note_success()
            self._breaker.note_success(address, asked)
            raise
        except ModelError as error:
            self.load.failures += 1
            explained = error
            if explain is not None and isinstance(error, RefusedRequestError):
                explained = explain(error)

            self._breaker.note_failure(address, asked, explained, call.setback)
            raise
        finally:
            # A request whose reply was cut, filtered or did not arrive may be billed.
            spent = most if call.is_under_way else NOTHING
            call.end_try(spent)

        self._breaker.note_success(address, asked)
        return reply

    async def _post(self, attempt: Attempt[T], call: _Call) -> EndpointReply[T]:
        while True:
            await call.begin_try()
            entered = self._clock()
            probe = await self._outage.enter()
            call.waited_s += self._clock() - entered
            try:
                tried = await self._try_in_slot(attempt, call, probe=probe)
                if tried is None:
                    continue

                outcome, sent_at, latency = tried
                if not isinstance(outcome, Setback):
                    self._outage.note_success()
                    last_setback = None if call.setback is None else call.setback.message
                    return EndpointReply(outcome, latency, call.waited_s, last_setback)

                call.end_try(call.most if outcome.policy.billed else Amount(calls=1))
                wait = self._wait_after(outcome, call, sent_at=sent_at, probe=probe)
            finally:
                if probe:
                    self._outage.leave()

            # Outside of the block above: a wait between tries must not delay other callers.
            if wait:
                began = self._clock()
                if self.may_end_early(outcome):
                    await self._outage.back_off(wait)
                else:
                    await self._sleep(wait)

                call.waited_s += self._clock() - began

    async def _try_in_slot(
        self, attempt: Attempt[T], call: _Call, *, probe: bool
    ) -> tuple[T | Setback, float, float] | None:
        """One try in a slot, when it was sent, and its latency; None if an outage began while the
        call queued for the slot.
        """
        queued = time.perf_counter()
        async with Slot(self._slots) as slot:
            current_ledger().slot_wait_s += time.perf_counter() - queued
            if self._outage.is_shut and not probe:
                return None

            sent_at = self._clock()
            async with self.load.calling(self._breaker.admit()) as exchange:
                call.is_under_way = True
                outcome = await attempt()
                # After a setback the slot is kept, so waiting calls first see its effects.
                if not isinstance(outcome, Setback):
                    await slot.release_early()

                call.is_under_way = False

            return outcome, sent_at, exchange.seconds()

    def _wait_after(self, setback: Setback, call: _Call, *, sent_at: float, probe: bool) -> float:
        """Seconds before the next try, besides an outage. Raises `ModelError` if there is none."""
        call.tries += 1
        call.setback = setback
        # The patience starts at the first failure, so time in a queue does not count.
        if call.since is None:
            call.since = sent_at

        call.unsound += setback.kind is FaultKind.UNSOUND
        self.load.waits += setback.kind is FaultKind.LIMITED
        is_mistake = setback.kind is FaultKind.UNREACHABLE and not self._outage.answered
        if is_mistake or not setback.policy.retried:
            raise self._final_error(setback, call)

        # The probing caller must always report its failure.
        if probe or setback.policy.outage:
            self._outage.note_failure(setback, sent_at=sent_at, probe=probe)

        wait_s = self._wait_or_raise(setback, call)
        self.load.retries += 1
        if setback.policy.outage:
            self._outage.report(setback.message, wait_s)

        return wait_s

    def _wait_or_raise(self, setback: Setback, call: _Call) -> float:
        """Seconds to wait before the next try. Raises `ModelError` if it was the last one."""
        assert call.since is not None, "a try has failed"
        elapsed = self._clock() - call.since
        most, patience = self.settings.max_retries, self.settings.patience_s
        # With a patience of 0, the first failure is final.
        is_final = (
            self._outage.is_exhausted
            or (elapsed >= patience and (call.tries >= MIN_TRIES or not patience))
            or call.unsound >= UNSOUND_TRIES
            or (most is not None and call.tries > most)
        )
        if is_final:
            raise self._final_error(setback, call)

        remaining_s = max(patience - elapsed, 0.0)
        if setback.kind is FaultKind.UNSOUND:
            return self._backoff.unsound_wait_s(call.unsound - 1, remaining_s)
        if self._outage.is_shut:
            # The next try waits at the outage's gate.
            return 0.0

        return self._backoff.wait_s(call.tries - 1, setback.retry_after_s, remaining_s)

    def may_end_early(self, setback: Setback) -> bool:
        """Whether an answer to another call may end the wait after a failed try: only if the
        endpoint named no time, and the number of tries is not limited.
        """
        is_unlimited = self.settings.max_retries is None
        return setback.kind is FaultKind.LIMITED and setback.retry_after_s is None and is_unlimited

    def _final_error(self, setback: Setback, call: _Call) -> ModelError:
        since = call.since
        if setback.policy.retried and self._outage.since is not None and since is not None:
            since = min(since, self._outage.since)

        waited = 0.0 if since is None else self._clock() - since
        duration = f" over {waited:.0f} s" if waited >= 1 else ""
        tries = ""
        if call.tries > 1:
            tries = f" (tried {call.tries} times{duration})"
        elif duration and setback.policy.retried:
            tries = f" (for {waited:.0f} s)"

        message = f"{setback.message}{tries}"
        if setback.kind is FaultKind.REFUSED:
            return RefusedRequestError(message, setback.parameter)

        return _ERRORS.get(setback.kind, ModelError)(message)

    async def _try(
        self, path: str, content: bytes, read: Callable[[Mapping[str, Any]], T], most_bytes: int
    ) -> T | Setback:
        """One try, from the connection to the last byte."""
        # Opened before the time limit starts: the imports take a second.
        transport = self._open(path)
        try:
            async with time_limit(self.settings.timeout_s) as deadline:
                status, headers, body = await transport.send(path, content, most_bytes)
        except Exception as error:  # noqa: BLE001
            # After any error of the client, the attempt has failed.
            if deadline.expired():
                return Setback(
                    f"no whole reply within {self.settings.timeout_s:g} s", FaultKind.LOST
                )

            return connection_setback(
                error, urlsplit(self.settings.base_url).hostname or self.settings.base_url
            )

        # Redirects are also failures: prompts and keys are sent only to the given URL.
        if status >= 300:
            return status_setback(status, headers, body, transport.plain_proxy)
        if status == ACCEPTED and not self.settings.takes_accepted:
            message = "HTTP 202: the request was only accepted, but the contract requires 200"
            return Setback(message, FaultKind.DECLINED, status=status)

        try:
            if len(body) > most_bytes:
                raise UnsoundReplyError(f"the reply is larger than {most_bytes / 2**20:.0f} MiB")

            return read(parse(body, headers.get("content-type", "")))
        except UnsoundReplyError as error:
            return unsound_setback(error, headers, body, final=self.settings.pages_are_final)

    def lose_store(self, error: StorageError) -> None:
        """Stops all work that calls endpoints, because a reply could not be stored."""
        self._breaker.lose_store(error)

    def limit(self, max_concurrency: int) -> None:
        """Sets the limit of requests under way."""
        self.settings = replace(self.settings, max_concurrency=max_concurrency)
        self.load.slots = max_concurrency
        self._slots.limit(self, max_concurrency)

    def _open(self, path: str) -> Transport:
        """The transport of a path, opened for the first request and then kept."""
        settings = self.settings
        by_client = path in BY_CLIENT or settings.api_version is not None
        if by_client in self._transports:
            return self._transports[by_client]

        address, api_key, headers = settings.base_url, settings.api_key, settings.headers
        if by_client:
            from memeval.llm.openai_client import ClientTransport

            self._transports[True] = ClientTransport(
                address, api_key=api_key, headers=headers, api_version=settings.api_version
            )
        else:
            self._transports[False] = Transport(address, api_key=api_key, headers=headers)

        return self._transports[by_client]

    async def aclose(self) -> None:
        self._slots.leave(self)
        while self._transports:
            _, transport = self._transports.popitem()
            await transport.aclose()
