"""Costs of a question and of a run: context, tokens, money and time."""

from collections.abc import Mapping
from dataclasses import replace

from memeval.metrics.formats import NONE, count, dollars, milliseconds, short_ms
from memeval.metrics.metric import (
    DOLLARS,
    MS,
    PAGE,
    PAPER,
    POINTS,
    PRICE,
    REPORT,
    SHOW,
    TABLE,
    TAGS,
    TILE,
    TOKENS,
    Metric,
)
from memeval.results import Record, RunSummary, fresh_cost_usd
from memeval.results.prices import total_cost_usd
from memeval.statistics.means import sum_or_none

PER_1000_TOKENS = replace(POINTS, name="points per 1,000 tokens", after="", most=None)
RETRIEVAL_P50, RETRIEVAL_P95 = "latency_ms/retrieval/p50", "latency_ms/retrieval/p95"


def _cost(record: Record) -> float | None:
    # Cached calls also count: otherwise the second run of a command would be cheaper.
    return total_cost_usd(record.usage, billed=False)


def accuracy_per_1000_tokens(figures: Mapping[str, float | None]) -> float | None:
    """The accuracy of a run for each 1,000 tokens of context; None if it showed no context."""
    accuracy, tokens = figures.get("accuracy"), figures.get("context_tokens")
    if accuracy is None or not tokens:
        return None

    return accuracy / (tokens / 1000)


def _tokens(record: Record) -> float | None:
    tokens: list[int | None] = []
    for usage in record.usage:
        tokens += (usage.prompt_tokens, usage.completion_tokens)

    # Unknown is not 0: one such call would make a system look cheap.
    return sum_or_none(tokens)


def _context_line(summary: RunSummary) -> str:
    return f"{count(summary.metrics.get('context_tokens'))} tokens per question"


def _billed_cost(summary: RunSummary) -> str:
    """The billed cost; empty if it equals the cost of a fresh run."""
    total = summary.metrics.get("cost_usd/total")
    return "" if total == fresh_cost_usd(summary.metrics) else dollars(total)


def _retrieval_times(summary: RunSummary) -> str:
    """Median and 95th percentile of one retrieval, in milliseconds: `0.04 / 0.11`."""
    median, slow = summary.metrics.get(RETRIEVAL_P50), summary.metrics.get(RETRIEVAL_P95)
    if median is None or slow is None:
        return NONE

    return f"{short_ms(median)} / {short_ms(slow)}"


def _retrieval_tile(summary: RunSummary) -> str:
    median = summary.metrics.get(RETRIEVAL_P50)
    if median is None:
        return ""

    return f"{milliseconds(median)} / {milliseconds(summary.metrics.get(RETRIEVAL_P95))}"


METRICS = (
    Metric(
        "context_tokens",
        TOKENS,
        aliases=("context",),
        of_record=lambda record: record.context_tokens,
        all_categories=True,
        columns={
            TABLE: "context",
            PAGE: "context",
            PAPER: "context",
            PRICE: "context, tokens per question",
        },
        lines={TILE: "Context", SHOW: "context tokens", REPORT: "context", TAGS: "context"},
        texts={REPORT: _context_line},
        hint="tokens that the reader saw, per question",
        order={TAGS: 99},
    ),
    Metric(
        "accuracy_per_1000_tokens",
        PER_1000_TOKENS,
        of_run=accuracy_per_1000_tokens,
        columns={PAGE: "per 1,000 tok"},
        hint="points of accuracy per 1,000 tokens of context",
    ),
    Metric(
        "tokens",
        TOKENS,
        figure="tokens/total",
        of_record=_tokens,
        all_categories=True,
        of_calls=True,
        columns={TABLE: "tokens", PAPER: "tokens of all repeats"},
    ),
    Metric(
        "cost_usd",
        DOLLARS,
        figure="cost_usd_uncached/total",
        aliases=("cost",),
        of_record=_cost,
        of_run=fresh_cost_usd,
        all_categories=True,
        of_calls=True,
        columns={
            TABLE: "cost $",
            PAGE: "cost $",
            PAPER: "fresh cost of all repeats",
            PRICE: "cost of the run without the cache, US dollars",
        },
        lines={
            TILE: "Cost of a fresh run",
            SHOW: "cost of a fresh run $",
            REPORT: "cost of a fresh run",
            TAGS: "cost",
        },
        hint="of a fresh run, without memeval’s own cache",
    ),
    Metric(
        "cost_usd/total",
        DOLLARS,
        columns={TABLE: "billed $", PAGE: "billed $"},
        lines={TILE: "Billed", SHOW: "billed $", REPORT: "billed"},
        texts={TABLE: _billed_cost, TILE: _billed_cost},
        hint="replies from memeval’s own cache cost nothing",
    ),
    Metric(
        "latency_ms",
        MS,
        figure="latency_ms/answer/p50",
        aliases=("latency",),
        of_record=lambda record: record.times.answer_ms,
        all_categories=True,
        columns={PAGE: "latency", PAPER: "median latency", PRICE: "latency of an answer, median"},
        lines={TILE: "Latency, median", SHOW: "answer, median", TAGS: "answer p50"},
        hint="of an answer, median",
        optional=(TILE,),
        order={TAGS: 98},
    ),
    Metric(
        RETRIEVAL_P50,
        MS,
        columns={TABLE: "retrieval ms", PAGE: "retrieval p50"},
        lines={
            TILE: "Retrieval, p50 / p95",
            SHOW: "retrieval, p50 / p95 ms",
            TAGS: "retrieval p50",
        },
        texts={TABLE: _retrieval_times, TILE: _retrieval_tile, SHOW: _retrieval_times},
        hint="of one retrieval, median; no queue, no cache",
    ),
    Metric(
        RETRIEVAL_P95,
        MS,
        columns={PAGE: "p95"},
        lines={TAGS: "retrieval p95"},
        hint="of one retrieval, 95th percentile",
    ),
)
