"""Ledgers, totals and prices."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from genai_prices.data import providers
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memeval.errors import ModelError, StorageError, UserError
from memeval.llm.contract import Completion
from memeval.llm.metering import Ledger, current_ledger, metered, totals, with_request
from memeval.llm.mock import MockModel
from memeval.llm.model import MeteredModel
from memeval.records import Role, Usage
from memeval.results.prices import cost_usd, provider_of, total_cost_usd

usages = st.lists(
    st.builds(
        Usage,
        role=st.sampled_from(list(Role)),
        model=st.sampled_from(["a", "b"]),
        provider=st.just("offline"),
        prompt_tokens=st.integers(0, 1000),
        completion_tokens=st.integers(0, 1000),
        estimated=st.booleans(),
        cached=st.booleans(),
    ),
    max_size=30,
)


@pytest.mark.slow
@given(usages, st.randoms())
def test_totals_keep_every_token_and_do_not_depend_on_order(
    many: list[Usage], random: object
) -> None:
    summed = totals(many)
    assert sum(u.prompt_tokens or 0 for u in summed) == sum(u.prompt_tokens or 0 for u in many)
    assert sum(u.calls for u in summed) == len(many)
    random.shuffle(many)  # type: ignore[attr-defined]
    assert totals(many) == summed


def test_sum_with_an_uncounted_part_is_unknown() -> None:
    known, unknown = (
        Usage(Role.ANSWER, "m", "openai", 5, 1),
        Usage(Role.ANSWER, "m", "openai", None, 1),
    )
    (summed,) = totals([known, unknown])
    assert summed.prompt_tokens is None


def test_replies_are_counted_by_reason_and_by_role() -> None:
    ledger = Ledger()
    for role, reason in ((Role.ANSWER, "stop"), (Role.INGEST, "length"), (Role.INGEST, None)):
        ledger.note_end(role, reason)

    assert (ledger.replies(), ledger.replies("unknown"), ledger.cut_calls) == (3, 1, 1)
    assert ledger.replies(role=Role.INGEST) == 2
    assert ledger.replies("length", Role.INGEST) == 1 and not ledger.replies("length", Role.ANSWER)

    ledger.drop_cut(Role.INGEST)
    assert (ledger.replies(), ledger.cut_calls) == (3, 0)


def test_useless_reply_is_billed_besides_the_next_one_to_the_same_request() -> None:
    usage = with_request(Usage(Role.INGEST, "m", "openai", 5, 1), key="0123456789abcdef")
    assert usage.requests == (("0123456789ab", 5, 1, 0),)
    useless, read = Usage(Role.INGEST, "m", "openai", 5, 1), usage
    with metered(Ledger(usages=[usage, usage])) as ledger:
        MeteredModel(MockModel()).forget(Completion(text="?", usage=usage, latency_s=0.1))

    assert ledger.usages == [useless, read]


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (asyncio.CancelledError(), 1),
        (StorageError("the disk is full"), 1),
        (UserError("no key"), 1),
        (ModelError("the question failed"), 0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_calls_of_work_that_ends_with_the_run_count_outside(
    error: BaseException, counted: int
) -> None:
    outer, usage = Ledger(), Usage(Role.ANSWER, "m", "openai", 5, 1)
    with metered(outer), suppress(type(error)), metered(Ledger(usages=[usage])):
        raise error

    assert outer.usages == [usage] * counted


def test_concurrent_questions_have_separate_ledgers_in_threads_too() -> None:
    async def one(scope: str) -> str:
        with metered(Ledger(scope=scope)):
            await asyncio.sleep(0)
            return await asyncio.to_thread(lambda: current_ledger().scope)

    async def both() -> list[str]:
        return await asyncio.gather(one("a"), one("b"))

    assert asyncio.run(both()) == ["a", "b"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tokens", [(1234, 56, 0), (300_001, 99_999, 12_345), (3, 1, 3)])
def test_every_price_equals_that_of_genai_prices(tokens: tuple[int, int, int]) -> None:
    prompt, completion, cached = tokens
    used = PricedUsage(input_tokens=prompt, output_tokens=completion, cache_read_tokens=cached)
    priced = 0

    for provider in providers:
        for model in provider.models:
            usage = Usage(
                Role.ANSWER, model.id, provider.id, prompt, completion, cached_tokens=cached
            )
            try:
                expected = calc_price(used, model_ref=model.id, provider_id=provider.id)
            except (LookupError, ValueError):
                assert cost_usd(usage) is None
            else:
                assert cost_usd(usage) == float(expected.total_price)
                priced += 1

    assert priced > 1000


def test_price_of_a_known_model_is_not_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = Usage(Role.ANSWER, "gpt-4o-mini", "openai", 100, 10)
    before = cost_usd(usage)
    looked_up: list[object] = []
    monkeypatch.setattr("genai_prices.calc_price", lambda *given, **named: looked_up.append(given))

    assert cost_usd(replace(usage, prompt_tokens=20_000)) is not None
    assert cost_usd(usage) == before
    assert not looked_up


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "sonar"])
def test_summed_calls_cost_as_much_as_the_single_calls(model: str) -> None:
    provider = "perplexity" if model == "sonar" else "google"
    call = Usage(Role.INGEST, model, provider, 3_000, 100, cached_tokens=1_000)
    (summed,) = totals([call] * 200)

    each = calc_price(
        PricedUsage(input_tokens=3_000, output_tokens=100, cache_read_tokens=1_000),
        model_ref=model,
        provider_id=provider,
    )
    assert summed.calls == 200
    assert cost_usd(summed) == pytest.approx(200 * float(each.total_price))


def test_prices_of_known_unknown_offline_and_cached_usage() -> None:
    million = Usage(Role.ANSWER, "gpt-4o-mini", "openai", 1_000_000, 0)
    assert cost_usd(million) == pytest.approx(0.15)
    assert cost_usd(Usage(Role.ANSWER, "nobody-knows-it", "unknown", 10, 10)) is None
    assert cost_usd(Usage(Role.ANSWER, "gpt-4o-mini", "openai", None, 10)) is None
    assert cost_usd(Usage(Role.ANSWER, "extractive", "offline", 10, 10)) == 0

    assert total_cost_usd([million, replace(million, cached=True)], billed=True) == pytest.approx(
        0.15
    )
    assert total_cost_usd([million, replace(million, cached=True)], billed=False) == pytest.approx(
        0.30
    )


@pytest.mark.parametrize(
    ("address", "provider"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://api.deepseek.com", "deepseek"),
        ("http://127.0.0.1:8000/v1", "unknown"),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1", "aws"),
        ("https://bedrock-runtime.example.com/openai/v1", "unknown"),
    ],
)
def test_provider_of_a_url(address: str, provider: str) -> None:
    assert provider_of(address) == provider
