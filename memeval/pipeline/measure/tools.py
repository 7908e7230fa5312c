"""Uses of tools in a repeat; empty if none were used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from memeval.metrics.tools import METRICS
from memeval.pipeline.measure.records import Ingest
from memeval.pipeline.measure.spending import Metrics, percentile, sum_or_none
from memeval.results import Record
from memeval.statistics.means import mean


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
        for call, took in zip(calls, record.times.tools_ms, strict=False):
            if took is not None:
                times[call.name].append(took)

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
