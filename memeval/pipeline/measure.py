"""Measures: from records to the metrics of a run, by the names of docs/metrics.md.

What was not measured is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import quantiles

from memeval.llm.prices import total_cost_usd
from memeval.metrics.answer import METRICS
from memeval.metrics.refusal import is_refusal
from memeval.metrics.retrieval import retrieval_metrics
from memeval.metrics.statistics import bounds, clustered_interval, design_effect, mean, sample_std
from memeval.pipeline.records import Ingest
from memeval.records import CategoryId, Label, Role, Status, Usage
from memeval.results import CategoryResult, Record

Metrics = dict[str, float | None]
Headline = frozenset[CategoryId] | None
"""Categories that enter `accuracy`; None where all do."""
_PLAIN_METRICS = tuple(name for name in METRICS if name != "token_f1")


def measure_repeat(
    records: Sequence[Record],
    ingests: Sequence[Ingest],
    headline: Headline = None,
) -> Metrics:
    """The metrics of one repeat.

    Categories outside of the headline never enter `accuracy` and its like.
    """
    main = [record for record in records if _in(headline, record)]
    values = [record.score for record in main]
    metrics: Metrics = {"accuracy": mean(values), "token_f1": _mean_metric(main, "token_f1")}
    metrics |= {name: _mean_metric(main, name) for name in _PLAIN_METRICS}
    for name, rows in _by_category_name(records).items():
        metrics |= _group(name, rows)
        metrics |= {f"{metric}/{name}": _mean_metric(rows, metric) for metric in _PLAIN_METRICS}

    metrics["accuracy_macro"] = mean(metrics[f"accuracy/{name}"] for name in category_names(main))
    for (facet, value), rows in _by_facet(records).items():
        metrics |= _group(f"{facet}/{value}", rows)

    scored = [record.score is not None for record in records]
    metrics["coverage"] = sum(scored) / len(scored) if scored else None
    metrics |= _judging(records)
    metrics["abstention_rate"] = _refusals([record for record in main if record.answerable])
    if unanswerable := [record for record in records if not record.answerable]:
        metrics["abstention_rate/unanswerable"] = _refusals(unanswerable)

    worst_best = bounds(values)
    metrics["accuracy_worst_case"], metrics["accuracy_best_case"] = worst_best or (None, None)
    metrics["n_questions"], metrics["n_records"] = float(len(main)), float(len(records))
    metrics["ingest_lost"] = _lost(ingests)
    metrics["context_tokens"] = mean(record.context_tokens for record in records)
    return metrics | _retrieval(records) | _spending(records, ingests) | _times(records, ingests)


def measure_cell(
    repeats: Sequence[Metrics], records: Sequence[Record], headline: Headline = None
) -> Metrics:
    """The metrics of a cell: means over its repeats, deviations between them, intervals clustered
    by case, sums of what was spent.
    """
    metrics: Metrics = {}
    for name in dict.fromkeys(name for repeat in repeats for name in repeat):
        column = [repeat.get(name) for repeat in repeats]
        metrics[name] = _total(column) if _is_sum(name) else mean(column)

    deviating = [
        "accuracy",
        "accuracy_macro",
        *(name for name in metrics if name.startswith("accuracy/")),
        "token_f1",
    ]
    for name in deviating:
        metrics[_std_name(name)] = sample_std(repeat.get(name) for repeat in repeats)

    main = [record for record in records if _in(headline, record)]
    low, high, effect = interval_of(main)
    return metrics | {"accuracy_ci95_low": low, "accuracy_ci95_high": high, "design_effect": effect}


def interval_of(records: Sequence[Record]) -> tuple[float | None, float | None, float | None]:
    """95 % interval of the accuracy, clustered by case, and the design effect; a question's value
    is its mean over repeats.
    """
    by_question: dict[str, list[float | None]] = {}
    cases: dict[str, str] = {}
    for record in records:
        by_question.setdefault(record.question_id, []).append(record.score)
        cases[record.question_id] = record.case_id

    values = [mean(column) for column in by_question.values()]
    clusters = [cases[question] for question in by_question]
    interval = clustered_interval(values, clusters)
    return (
        (interval.low, interval.high, design_effect(values, clusters))
        if interval
        else (None, None, None)
    )


def measure_categories(
    records: Sequence[Record], repeats: Sequence[Metrics], headline: Headline = None
) -> tuple[CategoryResult, ...]:
    """A row per category, headline ones first, in the order of their ids."""
    rows: dict[CategoryId, list[Record]] = {}
    for record in records:
        rows.setdefault(record.category, []).append(record)

    ids = sorted(rows, key=lambda category: (not _in(headline, rows[category][0]), str(category)))
    return tuple(
        _result(
            rows[category],
            repeats,
            str(category),
            rows[category][0].category_name,
            _in(headline, rows[category][0]),
        )
        for category in ids
    )


def measure_facets(
    records: Sequence[Record], repeats: Sequence[Metrics]
) -> dict[str, tuple[CategoryResult, ...]]:
    """A row per value of each facet, by facet."""
    results: dict[str, tuple[CategoryResult, ...]] = {}
    for (facet, value), rows in _by_facet(records).items():
        results[facet] = (
            *results.get(facet, ()),
            _result(rows, repeats, value, f"{facet}/{value}", True),
        )

    return results


def _result(
    rows: Sequence[Record], repeats: Sequence[Metrics], category: str, name: str, in_headline: bool
) -> CategoryResult:
    low, high, _ = interval_of(rows)
    return CategoryResult(
        category=category,
        name=name,
        n=len({row.question_id for row in rows}),
        scored=sum(row.score is not None for row in rows),
        asked=len(rows),
        headline=in_headline,
        accuracy=mean(repeat.get(f"accuracy/{name}") for repeat in repeats),
        accuracy_std=sample_std(repeat.get(f"accuracy/{name}") for repeat in repeats),
        ci95_low=low,
        ci95_high=high,
        token_f1=mean(repeat.get(f"token_f1/{name}") for repeat in repeats),
    )


def _by_category_name(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of each category, in the order of the categories' ids."""
    rows: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: (str(record.category), record.category_name)):
        rows.setdefault(record.category_name, []).append(record)

    return rows


def _by_facet(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """The records of each value of each facet, sorted by both."""
    rows: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        for facet, value in record.facets.items():
            rows.setdefault((facet, value), []).append(record)

    return dict(sorted(rows.items()))


def _in(headline: Headline, record: Record) -> bool:
    return headline is None or record.category in headline


def _group(name: str, rows: Sequence[Record]) -> Metrics:
    """What is told of each category and of each value of a facet."""
    return {
        f"accuracy/{name}": mean(row.score for row in rows),
        f"token_f1/{name}": _mean_metric(rows, "token_f1"),
        f"n_questions/{name}": float(len(rows)),
    }


def category_names(records: Iterable[Record]) -> list[str]:
    """Names of the categories among the records, in the order of their ids."""
    return list(
        dict(sorted((str(record.category), record.category_name) for record in records)).values()
    )


def _mean_metric(records: Iterable[Record], name: str) -> float | None:
    return mean(record.metrics.get(name) for record in records)


def _judging(records: Sequence[Record]) -> Metrics:
    """How sure the judge was: what it could not be read on, and where its judgings of one answer
    agree.
    """
    verdicts = [record.verdict for record in records if record.verdict]
    metrics: Metrics = {
        "unparsed_rate": mean(float(verdict.label is Label.UNSCORED) for verdict in verdicts)
    }
    votes = [verdict.votes for verdict in verdicts if verdict.votes]
    if votes:
        metrics["judge_unanimous"] = mean(float(len(set(labels)) == 1) for labels in votes)

    return metrics


def _refusals(records: Sequence[Record]) -> float | None:
    """Share of refusals among the answers in words; what was chosen among answers is not one."""
    answers = [record.hypothesis for record in records if record.is_whole and not record.choices]
    return mean(float(is_refusal(answer)) for answer in answers if answer is not None)


def _retrieval(records: Sequence[Record]) -> Metrics:
    """Means over all questions that name evidence, of whatever category; nothing for systems that
    expose no ranking.
    """
    rows = [
        retrieval_metrics(record.evidence_ranks, record.session_evidence_ranks or ())
        for record in records
        if record.evidence_ranks
    ]
    return {name: mean(row[name] for row in rows) for name in rows[0]} if rows else {}


def _lost(ingests: Sequence[Ingest]) -> float | None:
    """Share of the chunks that ingest lost, over all cases; None where nothing was ingested."""
    healths = [ingest.health for ingest in ingests if ingest.health]
    asked = sum(health.asked for health in healths)
    return sum(health.lost for health in healths) / asked if asked else None


def usages(rows: Iterable[Record | Ingest]) -> list[Usage]:
    """The calls of all rows."""
    return [usage for row in rows for usage in row.usage]


def _spending(records: Sequence[Record], ingests: Sequence[Ingest]) -> Metrics:
    spent = usages(records) + usages(ingests)
    metrics: Metrics = {}
    for role in Role:
        own = [usage for usage in spent if usage.role is role]
        if not own:
            continue

        metrics[f"tokens/{role}/prompt"] = _total(usage.prompt_tokens for usage in own)
        metrics[f"tokens/{role}/completion"] = _total(usage.completion_tokens for usage in own)
        metrics[f"tokens/{role}/cached"] = float(sum(usage.cached_tokens for usage in own))
        metrics[f"calls/{role}"] = float(sum(usage.calls for usage in own))
        metrics[f"cost_usd/{role}"] = total_cost_usd(own, billed=True)
        metrics[f"cost_usd_uncached/{role}"] = total_cost_usd(own, billed=False)

    parts = [value for usage in spent for value in (usage.prompt_tokens, usage.completion_tokens)]
    metrics["tokens/total"] = _total(parts)
    metrics["cost_usd/total"] = total_cost_usd(spent, billed=True)
    metrics["cost_usd_uncached/total"] = total_cost_usd(spent, billed=False)
    return metrics


def _times(records: Sequence[Record], ingests: Sequence[Ingest]) -> Metrics:
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
    return metrics


def percentile(values: Sequence[float], percent: int) -> float:
    """Percentile by linear interpolation; the value itself where there is only one."""
    return (
        quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]
    )


def _total(values: Iterable[float | None]) -> float | None:
    """Sum; None as soon as one part is unknown."""
    total = 0.0
    for value in values:
        if value is None:
            return None

        total += value

    return total


def _is_sum(name: str) -> bool:
    return name.startswith(("tokens/", "calls/", "cost_usd", "retry_wait_s"))


def _std_name(name: str) -> str:
    head, slash, tail = name.partition("/")
    return f"{head}_std{slash}{tail}"


def statuses(records: Iterable[Record]) -> dict[str, int]:
    """Records by status, the sound ones first."""
    counts = dict.fromkeys((status.value for status in Status), 0)
    for record in records:
        counts[record.status.value] += 1

    return {status: count for status, count in counts.items() if count}
