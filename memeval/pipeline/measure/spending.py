"""Spending of a run: tokens, calls, money and time; latency and output of its tools."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from statistics import quantiles

from memeval.pipeline.measure.records import Ingest
from memeval.records import OperationKind, Role, Usage
from memeval.results import Record
from memeval.results.prices import total_cost_usd
from memeval.results.rows import OperationDone, Written
from memeval.statistics.means import mean, sum_or_none

UNKNOWN_IF_IMPORTED = ("tokens/total", "cost_usd_uncached/total")
"""Metrics of the spending of the program whose answers were imported."""
Metrics = dict[str, float | None]
"""Metrics by name; None if a metric is not defined."""


def usages(rows: Iterable[Record | Ingest]) -> Iterator[Usage]:
    return chain.from_iterable(row.usage for row in rows)


def measure_spending(records: Sequence[Record], ingests: Sequence[Ingest]) -> Metrics:
    """Tokens, calls and costs, by role and in total."""
    spent = list(usages([*records, *ingests]))
    metrics: Metrics = {}
    for role in Role:
        of_role = [usage for usage in spent if usage.role is role]
        if not of_role:
            continue

        cached = calls = 0
        for usage in of_role:
            cached += usage.cached_tokens
            calls += usage.calls

        metrics[f"tokens/{role}/prompt"] = sum_or_none(usage.prompt_tokens for usage in of_role)
        metrics[f"tokens/{role}/completion"] = sum_or_none(
            usage.completion_tokens for usage in of_role
        )
        metrics[f"tokens/{role}/cached"] = float(cached)
        metrics[f"calls/{role}"] = float(calls)
        metrics[f"cost_usd/{role}"] = total_cost_usd(of_role, billed=True)
        metrics[f"cost_usd_uncached/{role}"] = total_cost_usd(of_role, billed=False)

    metrics["tokens/total"] = _tokens(spent)
    metrics["cost_usd/total"] = total_cost_usd(spent, billed=True)
    metrics["cost_usd_uncached/total"] = total_cost_usd(spent, billed=False)
    return metrics


def _tokens(spent: Iterable[Usage]) -> float | None:
    """Tokens sent and received; None if any part is unknown."""
    return sum_or_none(
        chain.from_iterable((use.prompt_tokens, use.completion_tokens) for use in spent)
    )


def measure_times(records: Sequence[Record], ingests: Sequence[Ingest]) -> Metrics:
    """Percentiles of the time that each step took, and the waits between retries."""
    steps: dict[str, list[float | None]] = defaultdict(list)
    waits, ready = [], []
    for ingest in ingests:
        steps["ingest"].append(ingest.row.times.ingest_ms)
        if ingest.row.times.ready_ms is not None:
            ready.append(ingest.row.times.ready_ms)

    for record in records:
        times = record.times
        steps["answer"].append(times.answer_ms)
        steps["retrieval"].append(times.retrieval_ms)
        steps["judge"].append(times.judge_ms)
        waits.append((times.wait_s or 0.0) + (times.judge_wait_s or 0.0))

    metrics = _percentiles(steps)
    metrics["retry_wait_s"] = sum(waits)
    if ready:
        metrics["ingest_ready_s"] = sum(ready) / 1e3

    return metrics


def _percentiles(steps: Mapping[str, Iterable[float | None]]) -> Metrics:
    metrics: Metrics = {}
    for step, column in steps.items():
        values = [value for value in column if value is not None]
        if values:
            metrics[f"latency_ms/{step}/p50"] = percentile(values, 50)
            metrics[f"latency_ms/{step}/p95"] = percentile(values, 95)

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
            key: tuple[object, ...] = (ingest.case_id, ingest.seed, operation.number)
            # Without numbers, each operation of a row counts.
            if operation.number is None:
                key = (*key, ingest.row.id, position)

            done.setdefault(key, operation)

    return list(done.values())


def measure_operations(ingests: Sequence[Ingest]) -> Metrics:
    """Requests to forget and to correct: share supported, mean ms, items, tokens, US dollars."""
    metrics: Metrics = {}
    done = requests_of(ingests)
    for kind in (OperationKind.FORGET, OperationKind.CORRECT):
        asked, name = 0, f"operations/{kind.value}"
        supported: list[OperationDone] = []
        spent: list[Usage] = []
        for operation in done:
            if operation.kind is kind:
                asked += 1
                if operation.items is not None:
                    supported.append(operation)
                    spent += operation.usage

        if asked:
            metrics[f"{name}/supported"] = len(supported) / asked
        if supported:
            metrics[f"{name}/ms"] = mean(operation.ms for operation in supported)
            metrics[f"{name}/items"] = sum_or_none(operation.items for operation in supported)
            metrics[f"{name}/vanished"] = sum_or_none(operation.vanished for operation in supported)
            metrics[f"{name}/tokens"] = _tokens(spent)
            metrics[f"{name}/cost_usd"] = total_cost_usd(spent, billed=False)

    return metrics


def percentile(values: Sequence[float], percent: int) -> float:
    """Percentile by linear interpolation; the value itself if there is only one."""
    if len(values) == 1:
        return values[0]

    return quantiles(values, n=100, method="inclusive")[percent - 1]


def measure_tools(records: Sequence[Record], ingests: Sequence[Ingest]) -> Metrics:
    """Content that a model wrote, and the latency of each tool."""
    return _latencies(records) | measure_writes(ingests)


def _latencies(records: Sequence[Record]) -> Metrics:
    times: dict[str, list[float | None]] = defaultdict(list)
    for record in records:
        calls = chain.from_iterable(step.calls for step in record.steps)
        for call, tool_ms in zip(calls, record.times.tools_ms, strict=False):
            times[f"tool/{call.name}"].append(tool_ms)

    return _percentiles(dict(sorted(times.items())))


def measure_writes(ingests: Sequence[Ingest]) -> Metrics:
    """Figures of the content that a model wrote; empty without `writer=tools`."""
    longest: dict[tuple[str, int, str], Written] = {}
    cases: list[tuple[str, int]] = []
    for ingest in ingests:
        output = ingest.row.written
        if output is not None:
            cases.append((ingest.case_id, ingest.seed))
            first = output.sessions[0].session_id if output.sessions else ""
            key = (ingest.case_id, ingest.seed, first)
            # A memory that can't be saved is written again for each checkpoint: the last has all.
            if len(output.sessions) > len(longest.setdefault(key, output).sessions):
                longest[key] = output

    if not longest:
        return {}

    written = longest.values()
    calls = errors = writes = read = 0.0
    for case in written:
        calls += case.calls
        errors += case.faults
        writes += case.writes
        read += case.read_characters

    kept = items = None
    # At each checkpoint, a memory also lists what it stored before.
    if len(set(cases)) == len(cases):
        items = sum_or_none(case.items for case in written)
        kept = sum_or_none(case.characters for case in written)

    return {
        "write_calls": calls,
        "write_errors": errors,
        "writes": writes,
        "write_items": items,
        "write_kept": kept / read if kept is not None and read else None,
    }
