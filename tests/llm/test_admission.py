"""What a call takes of a budget. After the budget has stopped the work, no call is sent: it would
be cancelled and paid again.
"""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from doubles.endpoint import ScriptedEndpoint

from memeval.errors import BudgetError
from memeval.llm.budget import Amount, Budget, SpendingLimits, amount_of, most_of
from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.reply.chat import ChatReply
from memeval.llm.reply.ranking import RankingReply
from memeval.llm.reply.vectors import VectorsReply
from memeval.llm.transport import encode


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


def test_a_call_waits_for_what_the_others_still_hold() -> None:
    async def play() -> bool:
        budget = Budget(SpendingLimits(tokens=100))
        first, second = Amount(usd=1.0, tokens=60, calls=1), Amount(tokens=30, calls=1)
        await budget.enter(first)
        await budget.enter(second)
        budget.leave(first, Amount())
        third = asyncio.create_task(budget.enter(Amount(tokens=71, calls=1)))
        for _ in range(3):
            await asyncio.sleep(0)

        waited = not third.done()
        budget.leave(second, Amount())
        await third
        return waited

    assert asyncio.run(play())


def test_a_call_that_comes_after_the_stop_is_not_sent() -> None:
    async def play() -> list[int]:
        budget, sent = Budget(SpendingLimits(tokens=1_000_000)), list[int]()

        async def late() -> None:
            while not budget.is_exhausted:  # noqa: ASYNC110 - the budget has no event
                await asyncio.sleep(0)

            await call(budget, sent, 1)

        async def work() -> None:
            await asyncio.gather(call(budget, sent, 1_000_001), late())

        with pytest.raises(BudgetError, match=r"0 of budget\.tokens=1000000 are spent"):
            await budget.run(work())

        return sent

    assert asyncio.run(play()) == []


def test_work_that_finishes_as_the_budget_ends_keeps_its_result() -> None:
    async def play() -> str:
        budget = Budget(SpendingLimits(calls=1))

        async def work() -> str:
            refused = asyncio.create_task(budget.enter(Amount(calls=2)))
            await asyncio.sleep(0)
            refused.cancel()
            assert budget.is_exhausted
            return "finished"

        return await budget.run(work())

    assert asyncio.run(play()) == "finished"


def test_a_call_is_held_at_its_most_and_booked_at_its_cost() -> None:
    """gpt-4o-mini: 0.15 dollars per million tokens sent, 0.075 cached, 0.60 received."""
    body = {"model": "gpt-4o-mini", "max_tokens": None, "max_completion_tokens": 100}
    most = most_of(body, 1_000, "openai")
    assert (most.usd, most.tokens, most.calls) == (pytest.approx(210e-6), 1_100, 1)
    usage = {"prompt_tokens": 200, "completion_tokens": 10, "cached_tokens": 100}
    spent = amount_of(body, ChatReply("Oslo", None, "stop", usage), "openai", most)
    assert (spent.usd, spent.tokens, spent.calls) == (pytest.approx(28.5e-6), 210, 1)
    assert amount_of(body, None, "openai", most) == most

    async def play() -> Amount:
        budget = Budget(SpendingLimits(usd=most.usd + spent.usd))

        async def twice() -> None:
            for _ in range(2):
                await budget.enter(most)
                budget.leave(most, spent)

        await budget.run(twice())
        return budget.spent

    assert asyncio.run(play()) == spent + spent


def test_request_that_is_cut_off_costs_the_most_that_it_may_cost() -> None:
    body = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "who?"}]}

    async def play(server: ScriptedEndpoint) -> Amount:
        budget = Budget(SpendingLimits(calls=9))
        settings = EndpointSettings(server.base_url, "key", 2, 60.0, 0)
        endpoint = Endpoint(settings, budget=budget)
        call = asyncio.create_task(endpoint.post("/chat/completions", body, as_object))
        while not server.count():  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0)

        call.cancel()
        await asyncio.wait([call])
        await endpoint.aclose()
        return budget.spent

    with ScriptedEndpoint(latency_s=60.0) as server:
        assert asyncio.run(play(server)) == most_of(body, len(encode(body)), "none")


def test_unreported_tokens_are_counted_for_a_ranking_with_the_query_of_each_document() -> None:
    body = {"model": "none", "query": "three short words", "documents": ["one", "two words"]}
    for tokens, expected in ((7, 7), (None, 9)):
        reply = RankingReply(scores=(1.0, 0.0), tokens=tokens)
        assert amount_of(body, reply, "none", Amount()) == Amount(tokens=expected, calls=1)

    unreported = VectorsReply(np.eye(2, dtype=np.float32), tokens=None)
    body = {"model": "none", "input": ["one", "two words"]}
    assert amount_of(body, unreported, "none", Amount()) == Amount(tokens=3, calls=1)
