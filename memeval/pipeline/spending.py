"""What a run spent: tokens, calls, money and time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import quantiles

from memeval.llm.prices import total_cost_usd
from memeval.pipeline.records import Ingest
from memeval.records import Role, Usage
from memeval.results import Record

Metrics = dict[str, float | None]
"""Metrics by name; None if a metric is not defined."""


def usages(rows: Iterable[Record | Ingest]) -> list[Usage]:
    """The calls of all rows."""
    return [usage for row in rows for usage in row.usage]


def measure_spending(records: Sequence[Record], ingests: Sequence[Ingest]) -> Metrics:
    """Tokens, calls and costs, by role and in all."""
    spent = usages(records) + usages(ingests)
    metrics: Metrics = {}
    for role in Role:
        own = [usage for usage in spent if usage.role is role]
        if not own:
            continue

        metrics[f"tokens/{role}/prompt"] = sum_or_none(usage.prompt_tokens for usage in own)
        metrics[f"tokens/{role}/completion"] = sum_or_none(usage.completion_tokens for usage in own)
        metrics[f"tokens/{role}/cached"] = float(sum(usage.cached_tokens for usage in own))
        metrics[f"calls/{role}"] = float(sum(usage.calls for usage in own))
        metrics[f"cost_usd/{role}"] = total_cost_usd(own, billed=True)
        metrics[f"cost_usd_uncached/{role}"] = total_cost_usd(own, billed=False)

    parts = [value for usage in spent for value in (usage.prompt_tokens, usage.completion_tokens)]
    metrics["tokens/total"] = sum_or_none(parts)
    metrics["cost_usd/total"] = total_cost_usd(spent, billed=True)
    metrics["cost_usd_uncached/total"] = total_cost_usd(spent, billed=False)
    return metrics


def measure_times(records: Sequence[Record], ingests: Sequence[Ingest]) -> Metrics:
    """Percentiles of the time that each step took, and the waits between retries."""
    steps = {
        "ingest": [ingest.row.times.ingest_ms for ingest in ingests],
        "answer": [record.times.answer_ms for record in records],
        "retrieval": [record.times.retrieval_ms for record in records],
        "judge": [record.times.judge_ms for record in records],
    }
    metrics: Metrics = {}
    for step, column in steps.items():
        values = [value for value in column if value is not None]
        if values:
            metrics[f"latency_ms/{step}/p50"] = percentile(values, 50)
            metrics[f"latency_ms/{step}/p95"] = percentile(values, 95)

    waits = [
        (record.times.wait_s or 0.0) + (record.times.judge_wait_s or 0.0) for record in records
    ]
    metrics["retry_wait_s"] = sum(waits)
    ready = [ms for ingest in ingests if (ms := ingest.row.times.ready_ms) is not None]
    if ready:
        metrics["ingest_ready_s"] = sum(ready) / 1e3

    return metrics


def percentile(values: Sequence[float], percent: int) -> float:
    """Percentile by linear interpolation; the value itself where there is only one."""
    return (
        quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]
    )


def sum_or_none(values: Iterable[float | None]) -> float | None:
    """Sum; None as soon as one part is unknown."""
    total = 0.0
    for value in values:
        # A sum that leaves out the unknown would read as the whole.
        if value is None:
            return None

        total += value

    return total
