"""After the budget has stopped the work, no call is sent: it would be cancelled and paid again."""

from __future__ import annotations

import asyncio

import pytest

from memeval.errors import BudgetError
from memeval.llm.budget import Amount, Budget, SpendingLimits


async def call(budget: Budget, sent: list[int], tokens: int) -> None:
    """A call that uses ten tokens fewer than its limit."""
    most = Amount(tokens=tokens, calls=1)
    await budget.enter(most)
    sent.append(tokens)
    await asyncio.sleep(0)
    budget.leave(most, Amount(tokens=max(0, tokens - 10), calls=1))


def test_a_smaller_call_is_not_sent_once_a_larger_one_did_not_fit() -> None:
    async def play() -> list[int]:
        budget, sent = Budget(SpendingLimits(tokens=100)), list[int]()

        async def work() -> None:
            await asyncio.gather(*(call(budget, sent, tokens) for tokens in (90, 50, 20)))

        with pytest.raises(BudgetError, match=r"80 of budget\.tokens=100 are spent"):
            await budget.run(work())

        return sent

    # After the first call 20 tokens are left: the last call would fit, but the second has ended the
    # work.
    assert asyncio.run(play()) == [90]


def test_a_call_that_comes_after_the_stop_is_not_sent() -> None:
    async def play() -> list[int]:
        budget, sent = Budget(SpendingLimits(tokens=100)), list[int]()

        async def late() -> None:
            while not budget.is_spent:  # noqa: ASYNC110 - the budget has no event of its own
                await asyncio.sleep(0)

            await call(budget, sent, 1)

        async def work() -> None:
            await asyncio.gather(call(budget, sent, 101), late())

        with pytest.raises(BudgetError):
            await budget.run(work())

        return sent

    assert asyncio.run(play()) == []
