"""The health of an endpoint: in an outage all callers pause, and one at a time retries."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from memeval.llm.faults import FaultKind, Setback

LONGEST_WAIT_S = 60.0
"""Longest wait between attempts, unless Retry-After asks for more and that fits the patience."""
FIRST_WAIT_S = 0.5
FIRST_UNSOUND_WAIT_S = 0.75
"""First of five waits that double, at least 23 s in total: short outages do not fail a call."""
FAILURES_OF_AN_OUTAGE = 5
"""Consecutive failures, over all callers, that count as an outage."""
PROBE_STEPS = 5
"""Steps after which the waits of the probing caller no longer grow: they are up to 16 s."""
QUIET_S = 2.0
"""A shorter outage is not reported."""
REPORT_EVERY_S = 10.0
"""Seconds between two messages about one outage."""

Clock = Callable[[], float]
Sleep = Callable[[float], Coroutine[Any, Any, None]]
Say = Callable[[str], None]


class Backoff:
    """The waits between two tries."""

    def __init__(self) -> None:
        self._jitter = random.Random(0)

    def wait_s(self, tries: int, retry_after_s: float | None, remaining_s: float) -> float:
        """A random wait in a doubling span, after the wait that the endpoint requests."""
        span = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(tries, 16))
        # Starts at 0, so that callers that failed together don't return together.
        drawn = self._jitter.uniform(0, span)
        remaining_s = max(0.0, remaining_s)
        if retry_after_s is None:
            return min(drawn, remaining_s)

        if retry_after_s > remaining_s:
            retry_after_s = min(retry_after_s, LONGEST_WAIT_S)

        # A little more than requested, so that the callers don't all arrive at that moment.
        return min(retry_after_s + 0.1 * drawn, remaining_s)

    def unsound_wait_s(self, tries: int, remaining_s: float) -> float:
        """The wait after an unsound reply under status 200."""
        # Longer and less random than other waits, because the number of these tries is bounded.
        span = min(LONGEST_WAIT_S, FIRST_UNSOUND_WAIT_S * 2.0 ** min(tries, 16))
        return min(self._jitter.uniform(span, 2 * span), max(0.0, remaining_s))


class Outage:
    """A gate, open while an endpoint answers; while it is shut, one caller at a time tries."""

    def __init__(
        self,
        address: str,
        patience_s: float,
        *,
        clock: Clock,
        sleep: Sleep,
        backoff: Backoff,
        say: Say | None,
    ) -> None:
        self._address, self._patience_s = address, patience_s
        self._clock, self._sleep, self._backoff, self._say = clock, sleep, backoff, say
        self.answered = False
        """Whether the endpoint has ever answered."""
        self.since: float | None = None
        """Time of the first failure since the last success."""
        self._failures = self._probes = 0
        self._opened_at = 0.0
        self._until: float | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._probing = False
        self._backing_off: deque[asyncio.Event] = deque()
        """Set to end the waits of single callers, the oldest first."""
        self._reported: float | None = None

    @property
    def is_exhausted(self) -> bool:
        """Whether the endpoint has not answered for the whole patience."""
        return self.since is not None and self._clock() - self.since >= self._patience_s

    @property
    def is_shut(self) -> bool:
        """Whether callers wait."""
        return not self._open.is_set()

    async def enter(self) -> bool:
        """Waits until this caller may send; True if it probes for all, and must call `leave`."""
        while self.is_shut:
            if self._probing:
                await self._open.wait()
                continue

            self._probing = True
            try:
                while (
                    self.is_shut
                    and self._until is not None
                    and (remaining_s := self._until - self._clock()) > 0
                ):
                    # A call sent before the outage may still be answered, which ends it.
                    await self._pause(remaining_s, self._open)
            except BaseException:
                self.leave()
                raise

            if self.is_shut:
                return True

            self._probing = False

        return False

    async def back_off(self, seconds: float) -> None:
        """Waits for `seconds`, or less if the endpoint answers: each answer ends one wait."""
        released = asyncio.Event()
        self._backing_off.append(released)
        try:
            await self._pause(seconds, released)
        finally:
            with suppress(ValueError):
                self._backing_off.remove(released)

    async def _pause(self, seconds: float, end: asyncio.Event) -> None:
        """Waits for `seconds`, or until `end` is set."""
        waits = {
            asyncio.ensure_future(self._sleep(seconds)),
            asyncio.ensure_future(end.wait()),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

            await asyncio.gather(*waits, return_exceptions=True)

    def leave(self) -> None:
        """Ends the turn of the probing caller. If the gate is shut, the next caller probes."""
        self._probing = False
        if self.is_shut:
            # Wakes the waiting callers, one of which becomes the next to try.
            self._open.set()
            self._open = asyncio.Event()

    def note_success(self) -> None:
        """Notes a sound answer: all callers at the gate continue, and one that backs off."""
        if self._backing_off:
            self._backing_off.popleft().set()
        if self._say and self._reported is not None and self.since is not None:
            self._say(f"{self._address} answers again after {self._clock() - self.since:.0f} s")

        self.answered, self.since, self._reported = True, None, None
        self._failures = self._probes = 0
        if self.is_shut:
            self._opened_at = self._clock()
            self._open.set()

    def note_failure(self, setback: Setback, *, sent_at: float, probe: bool) -> None:
        """Notes a temporary failure, and shuts the gate if it is due."""
        now = self._clock()
        # The patience counts from here, over all callers together.
        if self.since is None:
            self.since = now

        self._failures += 1
        if self.is_exhausted:
            # From now on every caller tries once, without waiting.
            self._open.set()
            return

        # A call that was sent before the last outage ended is no evidence for the time after it.
        stale = not probe and sent_at < self._opened_at
        due = probe or (
            not self.is_shut
            and not stale
            and (setback.kind is FaultKind.LIMITED or self._failures >= FAILURES_OF_AN_OUTAGE)
        )

        if due:
            remaining_s = self.since + self._patience_s - now
            self._until = now + self._backoff.wait_s(
                min(self._probes, PROBE_STEPS), setback.retry_after_s, remaining_s
            )
            self._probes += 1
            if not self.is_shut:
                self._open.clear()

    def report(self, problem: str, wait_s: float = 0.0) -> None:
        """Reports a wait that outlasts `QUIET_S`, then every few seconds."""
        now = self._clock()
        if self._say is None or self.since is None:
            return

        # As of the end of the wait: nothing else is reported before the next failure.
        until = now + wait_s
        if self.is_shut and self._until is not None:
            until = max(until, self._until)

        if until - self.since < min(QUIET_S, self._patience_s / 4):
            return

        if self._reported is None or now - self._reported >= REPORT_EVERY_S:
            self._reported = now
            self._say(
                f"waiting for {self._address}: {problem} for {now - self.since:.0f} s of "
                f"{self._patience_s:g} s"
            )
