"""A budget that is never exceeded: a call starts only if its maximum cost still fits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from memeval.errors import BudgetError
from memeval.llm.in_flight import finish_or_cancel
from memeval.llm.reply.chat import ChatReply
from memeval.llm.reply.ranking import RankingReply
from memeval.llm.reply.vectors import VectorsReply
from memeval.llm.tokens import count_tokens
from memeval.records import Role, Usage
from memeval.results.prices import cost_usd

T = TypeVar("T")


class SpendingLimits(Struct, frozen=True):
    """Limits of one command's spending; None means no limit."""

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None

    @property
    def any(self) -> bool:
        return (self.usd, self.tokens, self.calls) != (None, None, None)

    def exceeded(self, amount: object) -> str | None:
        """The name of the first limit that the fields of the same names exceed; None if none
        does. A field of None is unknown, and exceeds nothing.
        """
        for name, limit in asdict(self).items():
            used = getattr(amount, name)
            if limit is not None and used is not None and used > limit:
                return name

        return None


class Amount(Struct, frozen=True):
    """Calls, tokens and money."""

    usd: float = 0.0
    tokens: int = 0
    calls: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.usd + other.usd, self.tokens + other.tokens, self.calls + other.calls)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.usd - other.usd, self.tokens - other.tokens, self.calls - other.calls)


class Budget:
    """Tracks the amounts spent and reserved for calls under way."""

    def __init__(self, limits: SpendingLimits) -> None:
        self.limits = limits
        self.spent = Amount()
        self._held = Amount()
        self._under_way = 0
        self._call_ended = asyncio.Event()
        self._stopped: asyncio.Event = asyncio.Event()
        self._refused = Amount()
        """The maximum cost of the call that did not fit."""

    @property
    def is_exhausted(self) -> bool:
        """Whether a call did not fit, so that the work is being stopped."""
        return self._stopped.is_set()

    async def enter(self, most: Amount) -> None:
        """Reserves the maximum cost of a call; waits until it fits, or until cancelled."""
        # Once the budget is spent, no call may start, even if it fits: the work is being cancelled.
        while self.is_exhausted or self.limits.exceeded(self.spent + self._held + most) is not None:
            if not self._under_way and not self.is_exhausted:
                self._refused = most
                self._stopped.set()

            await self._call_ended.wait()

        self._held += most
        self._under_way += 1

    def leave(self, held: Amount, spent: Amount) -> None:
        """Ends a call: releases its reserved amount and books what it really spent."""
        self._held -= held
        self.spent += spent
        self._under_way -= 1
        # Not immediately: the caller must store its reply before a woken caller can end the run.
        with suppress(RuntimeError):
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._call_ended.set()
        self._call_ended.clear()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. Raises `BudgetError` if the budget allows no further call."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stopped.wait())
        try:
            await finish_or_cancel(task, stop)
        finally:
            stop.cancel()

        if self._stopped.is_set() and task.cancelled():
            raise BudgetError(self.describe_end())

        return task.result()

    def describe_end(self) -> str:
        """The reason why the work was stopped."""
        name = self.limits.exceeded(self.spent + self._refused)
        if name is None:
            return "stopped: the budget is spent"

        style = "${:.4f}" if name == "usd" else "{:,}"
        spent, most = getattr(self.spent, name), getattr(self._refused, name)
        return (
            f"stopped: {style.format(spent)} of budget.{name}={getattr(self.limits, name):.15g} "
            f"are spent, and the next call may cost up to {style.format(most)}"
        )


def most_of(body: Mapping[str, Any], size: int, provider: str) -> Amount:
    """The maximum cost of a request whose body has `size` bytes: a token is at least one byte."""
    # Which of the two parameters is sent depends on the model.
    reply = max(body.get("max_tokens") or 0, body.get("max_completion_tokens") or 0)
    return _amount(body, provider, prompt=size, completion=reply)


def amount_of(body: Mapping[str, Any], reply: object, provider: str, most: Amount) -> Amount:
    """The cost of a request according to its reply; `most` if the reply does not report it."""
    if isinstance(reply, ChatReply):
        usage = reply.usage
        return _amount(
            body,
            provider,
            prompt=usage["prompt_tokens"],
            completion=usage["completion_tokens"],
            cached=usage["cached_tokens"],
        )

    if isinstance(reply, VectorsReply | RankingReply):
        tokens = reply.tokens
        if tokens is None:
            texts = list(body.get("input") or body.get("documents") or ())
            query = count_tokens(str(body.get("query") or ""))
            # A reranker reads the query again with each document.
            tokens = sum(count_tokens(str(text)) + query for text in texts)

        return _amount(body, provider, prompt=tokens)

    return most


def _amount(
    body: Mapping[str, Any], provider: str, *, prompt: int, completion: int = 0, cached: int = 0
) -> Amount:
    usage = Usage(
        Role.ANSWER, str(body.get("model", "")), provider, prompt, completion, cached_tokens=cached
    )
    # With a budget in dollars, an unknown price is refused before the run.
    return Amount(usd=cost_usd(usage) or 0.0, tokens=prompt + completion, calls=1)
