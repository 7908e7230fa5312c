"""Sections of a report on a run's cost and time, and the outcomes of its answers."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from memeval.metrics.formats import count, milliseconds
from memeval.report.escaping import inline
from memeval.report.tables import money, table, text
from memeval.results import Record, RunSummary, read_records, run_cost_usd

FAILURES_SHOWN = 10
STAGES = ("ingest", "answer", "judge", "embed")


def tokens_section(summary: RunSummary) -> list[str]:
    """Tokens by stage, and their cost with and without memeval's response cache."""
    get = summary.metrics.get
    rows = []

    for stage in STAGES:
        moved = [get(f"tokens/{stage}/{kind}") for kind in ("prompt", "completion", "cached")]
        # A stage without a call has no row: a row of zeros would look like a measurement.
        if any(moved):
            rows.append((stage, *map(count, moved), money(get(f"cost_usd/{stage}"))))

    if get("tokens/total") is not None or "cost_usd/total" in summary.metrics:
        total = f"{count(get('tokens/total'))} in all"
        rows.append(("**all**", total, "", "", f"**{money(get('cost_usd/total'))}**"))

    if not rows:
        return []

    header = (
        "stage",
        "prompt tokens",
        "completion tokens",
        "prompt tokens cached by the provider",
        "billed",
    )
    uncached = f"A fresh run, without memeval's cache: {money(run_cost_usd(summary))}."

    return ["## Tokens and cost", "", *table(header, rows), "", uncached]


def latency_section(summary: RunSummary) -> list[str]:
    """Latency by stage; a reply from memeval's cache counts with its original time."""
    get = summary.metrics.get
    rows = []
    for stage in ("ingest", "retrieval", "answer", "judge"):
        median, slow = get(f"latency_ms/{stage}/p50"), get(f"latency_ms/{stage}/p95")
        if median is not None:
            rows.append((stage, milliseconds(median), milliseconds(slow)))

    lines: list[str] = []
    if rows:
        lines += ["", "Replies from memeval's cache count with their original time.", ""]
        lines += table(("stage", "median", "95th percentile"), rows)

    seconds, wait = get("duration_s"), get("retry_wait_s")
    if seconds is not None:
        waited = ""
        if wait:
            waited = f"; all calls together waited {milliseconds(1000 * wait)} before retries"

        lines += ["", f"Wall time {milliseconds(1000 * seconds)}{waited}."]

    ready = get("ingest_ready_s")
    if ready is not None:
        lines += [
            "",
            f"After the ingest, {milliseconds(1000 * ready)} until the memories could be searched.",
        ]

    if not lines:
        return []

    return ["## Latency", *lines]


def status_section(summary: RunSummary, failures: Sequence[Record]) -> list[str]:
    """Outcomes of the questions, and the first failures."""
    if not summary.statuses:
        return []

    counts = [(inline(status), count(n)) for status, n in summary.statuses.items()]
    lines = ["## Statuses", "", *table(("status", "records"), counts)]
    if not failures:
        return lines

    rows = []
    for record in failures:
        cells = (record.question_id, record.repeat, record.status.value, record.error)
        rows.append(list(map(text, cells)))

    title = f"The first {len(rows)} failures:" if len(rows) > 1 else "The failure:"
    lines += ["", title, ""]
    lines += table(("question", "repeat", "status", "error"), rows, figures=False)

    return lines


def failed_rows(path: Path) -> Iterator[Record]:
    """The first records that did not end as `ok`; none if there is no file of records."""
    if not path.exists():
        return

    failed = (record for record in read_records(path) if not record.status.is_complete)
    yield from islice(failed, FAILURES_SHOWN)
