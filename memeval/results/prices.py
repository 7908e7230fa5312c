"""Prices of tokens: the user's own file, or the table of genai-prices, offline."""

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from memeval.records import Role, Usage
from memeval.results.own_prices import (
    FIELDS,
    FIGURES_CODE,
    MARK,
    PACKAGE_PRICES,
    PER,
    own_prices,
    prices_mark,
)
from memeval.statistics.means import sum_or_none

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

_HOSTS = {
    "api.openai.com": "openai",
    "api.deepseek.com": "deepseek",
    "api.anthropic.com": "anthropic",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral",
    "api.x.ai": "x-ai",
    "api.together.xyz": "together",
    "api.fireworks.ai": "fireworks",
    "api.cohere.ai": "cohere",
    "openrouter.ai": "openrouter",
    "generativelanguage.googleapis.com": "google",
}
UNKNOWN_PROVIDER = "unknown"


def provider_of(base_url: str) -> str:
    """Name in the price table of the provider behind a URL; `unknown` for any other."""
    host = urlsplit(base_url).hostname or ""
    if re.fullmatch(r"bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?", host):
        return "aws"

    return _HOSTS.get(host, UNKNOWN_PROVIDER)


def cost_usd(usage: Usage) -> float | None:
    """Price of `usage` in US dollars, billed or not; None if price or tokens are unknown."""
    if usage.provider == "offline":
        return 0.0
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None

    cached = min(usage.cached_tokens, usage.prompt_tokens)
    file = own_prices()
    if file is not None and (prices := file.of_model(usage.model, usage.provider)) is not None:
        sent, received, from_cache = prices
        fresh = usage.prompt_tokens - cached
        return (fresh * sent + cached * from_cache + usage.completion_tokens * received) / PER

    return _price(
        usage.model,
        usage.provider,
        usage.prompt_tokens,
        usage.completion_tokens,
        cached,
        calls=usage.calls,
    )


def prices_of(usage: Usage) -> tuple[float, float, float] | None:
    """US dollars per million tokens sent, received, and cached; None if unknown or not constant."""
    if usage.provider == "offline":
        return 0.0, 0.0, 0.0
    file = own_prices()
    if file is not None and (prices := file.of_model(usage.model, usage.provider)) is not None:
        return prices

    linear = _linear_price(usage.model, usage.provider)
    if linear is None:
        return None

    return float(linear[0]), float(linear[1]), float(linear[2])


def has_other_prices(tags: Mapping[str, str]) -> bool:
    """Whether the figures of a run with these tags have other prices than those in force."""
    packed = tags.get(PACKAGE_PRICES)
    if packed is None:
        _, mark, digest = tags.get(FIGURES_CODE, "").partition(MARK)
        return mark + digest != prices_mark()

    for name, prices in json.loads(packed).items():
        provider, _, model = name.partition(" ")
        in_force = prices_of(Usage(Role.ANSWER, model, provider))
        if in_force != tuple(prices[field] for field in FIELDS):
            return True

    return False


def total_cost_usd(usages: Iterable[Usage], *, billed: bool) -> float | None:
    """Sum of costs, without cached replies if `billed`; None if any part is unknown."""
    counted = (usage for usage in usages if not (billed and usage.cached))
    return sum_or_none(map(cost_usd, counted))


# A summary needs each price six times: by role and in total, billed or not.
@lru_cache(maxsize=1 << 15)
def _price(
    model: str, provider: str, prompt: int, completion: int, cached: int, *, calls: int
) -> float | None:
    if _look_up_price(model, provider, 0, 0, 0) is None:
        return None

    linear = _linear_price(model, provider)
    if linear is None:
        # Fees, and prices that depend on the length of the prompt, apply to each call. Only the
        # mean length of the calls is known, and only whole tokens have a price.
        calls = max(calls, 1)
        mean = [round(tokens / calls) for tokens in (prompt, completion, cached)]
        each = _look_up_price(model, provider, *mean)
        return None if each is None else float(calls * each.total_price)

    # As decimals, like genai-prices, so that the result is the same to the last digit.
    sent, received, from_cache = linear
    return float((sent * (prompt - cached) + from_cache * cached + received * completion) / PER)


@lru_cache(maxsize=1024)
def _linear_price(model: str, provider: str) -> tuple[Decimal, Decimal, Decimal] | None:
    """Dollars per million tokens sent, received, cached; None if unknown, tiered or per request."""
    from genai_prices.types import TieredPrices

    request = _look_up_price(model, provider, 0, 0, 0)
    if request is None or request.total_price:
        return None

    if any(isinstance(price, TieredPrices) for price in vars(request.model_price).values()):
        return None

    sent = _look_up_price(model, provider, PER, 0, 0)
    received = _look_up_price(model, provider, 0, PER, 0)
    from_cache = _look_up_price(model, provider, PER, 0, PER)
    if sent is None or received is None or from_cache is None:
        return None

    return sent.total_price, received.total_price, from_cache.total_price


@lru_cache(maxsize=4096)
def _look_up_price(
    model: str, provider: str, prompt: int, completion: int, cached: int
) -> "PriceCalculation | None":
    """The price of a call according to genai-prices; None for an unknown model."""
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    tokens = PricedUsage(input_tokens=prompt, output_tokens=completion, cache_read_tokens=cached)
    providers = (None, "openai") if provider == UNKNOWN_PROVIDER else (provider,)
    for provider_id in providers:
        try:
            return calc_price(tokens, model_ref=model, provider_id=provider_id)
        except (LookupError, ValueError):
            continue

    return None
