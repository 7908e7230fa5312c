"""Spending of a run: tokens, calls, money and time; and its tool use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import quantiles

from memeval.metrics.tools import METRICS
from memeval.pipeline.measure.records import Ingest
from memeval.records import OperationKind, Role, Usage
from memeval.results import Record
from memeval.results.prices import total_cost_usd
from memeval.results.rows import OperationDone
from memeval.statistics.means import mean, sum_or_none

UNKNOWN_IF_IMPORTED = ("tokens/total", "cost_usd_uncached/total")
"""Metrics of the spending of the program that gave imported answers."""
Metrics = dict[str, float | None]
"""Metrics by name; None if a metric is not defined."""


def usages(rows: Iterable[Record | Ingest]) -> list[Usage]:
    return [usage for row in rows for usage in row.usage]


def measure_spending(records: Sequence[Record], ingests: Sequence[Ingest]) -> Metrics:
    """Tokens, calls and costs, by role and in total."""
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


def requests_of(ingests: Iterable[Ingest]) -> list[OperationDone]:
    """Operations on the memories of a run, one per request of the data.

    A memory that can't be saved repeats the earlier requests at each checkpoint: only the first
    time counts here; the run's spending includes the calls of all.
    """
    done: dict[tuple[object, ...], OperationDone] = {}
    # The earlier a checkpoint, the fewer requests it repeats.
    for ingest in sorted(ingests, key=lambda ingest: (len(ingest.row.operations), ingest.row.id)):
        for position, operation in enumerate(ingest.row.operations):
            # Without numbers, each operation of a row counts.
            unnumbered = (ingest.row.id, position) if operation.number is None else ()
            key = (ingest.case_id, ingest.seed, operation.number, *unnumbered)
            done.setdefault(key, operation)

    return list(done.values())


def measure_operations(ingests: Sequence[Ingest]) -> Metrics:
    """Requests to forget and to correct: share supported, mean ms, items, tokens, US dollars."""
    metrics: Metrics = {}
    done = requests_of(ingests)
    for kind in (OperationKind.FORGET, OperationKind.CORRECT):
        own = [operation for operation in done if operation.kind is kind]
        if not own:
            continue

        able = [operation for operation in own if operation.items is not None]
        name = f"operations/{kind.value}"
        metrics[f"{name}/supported"] = len(able) / len(own)
        if able:
            spent = [usage for operation in able for usage in operation.usage]
            tokens = [part for use in spent for part in (use.prompt_tokens, use.completion_tokens)]
            metrics[f"{name}/ms"] = mean(operation.ms for operation in able)
            metrics[f"{name}/items"] = sum_or_none(operation.items for operation in able)
            metrics[f"{name}/vanished"] = sum_or_none(operation.vanished for operation in able)
            metrics[f"{name}/tokens"] = sum_or_none(tokens)
            metrics[f"{name}/cost_usd"] = total_cost_usd(spent, billed=False)

    return metrics


def percentile(values: Sequence[float], percent: int) -> float:
    """Percentile by linear interpolation; the value itself if there is only one."""
    return (
        quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]
    )


def measure_tools(records: Sequence[Record], ingests: Sequence[Ingest]) -> Metrics:
    """The figures of `memeval.metrics.tools`, and the latency of each tool."""
    metrics = _latencies(records) | _writes(ingests)
    for metric in METRICS:
        if metric.is_of_questions:
            values = [metric.of_question(record) for record in records]
            value = mean(values, [record.weight for record in records])
            if value is not None:
                metrics[metric.name] = value

    return metrics


def _latencies(records: Sequence[Record]) -> Metrics:
    times: dict[str, list[float]] = defaultdict(list)
    for record in records:
        calls = [call for step in record.steps for call in step.calls]
        for call, tool_ms in zip(calls, record.times.tools_ms, strict=False):
            if tool_ms is not None:
                times[call.name].append(tool_ms)

    metrics: Metrics = {}
    for name, values in sorted(times.items()):
        metrics[f"latency_ms/tool/{name}/p50"] = percentile(values, 50)
        metrics[f"latency_ms/tool/{name}/p95"] = percentile(values, 95)

    return metrics


def _writes(ingests: Sequence[Ingest]) -> Metrics:
    written = [ingest.row.written for ingest in ingests if ingest.row.written is not None]
    if not written:
        return {}

    read = sum(case.read_characters for case in written)
    kept = sum_or_none(case.characters for case in written)
    return {
        "write_calls": float(sum(case.calls for case in written)),
        "write_errors": float(sum(case.faults for case in written)),
        "writes": float(sum(case.writes for case in written)),
        "write_items": sum_or_none(case.items for case in written),
        "write_kept": kept / read if kept is not None and read else None,
    }
