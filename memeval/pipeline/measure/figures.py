"""Metrics of a run from its records (docs/metrics.md); unmeasured ones are None, never 0."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import itemgetter

from memeval.metrics.lifecycle import life_measures
from memeval.metrics.metric import Metric
from memeval.metrics.registry import metrics as all_metrics
from memeval.metrics.retrieval import retrieval_of
from memeval.metrics.stored import stored_measures
from memeval.metrics.tools import METRICS as OF_TOOLS
from memeval.pipeline.measure.records import Ingest
from memeval.pipeline.measure.spending import (
    UNKNOWN_IF_IMPORTED,
    Metrics,
    measure_operations,
    measure_spending,
    measure_times,
    measure_tools,
)
from memeval.records import CategoryId, EvalQuestion, IngestHealth, Label, Status
from memeval.results import CategoryResult, Record
from memeval.results.texts import reference
from memeval.statistics.means import (
    bounds,
    design_effect,
    mean,
    sample_std,
    scored_mean,
    sum_or_none,
)
from memeval.text.shown import natural_order

NO_TEXT = reference("")
"""Reference of an empty context."""
Headline = frozenset[CategoryId] | None
"""Categories that count towards `accuracy`; None if all do."""
_SUMS = ("tokens/", "calls/", "cost_usd", "retry_wait_s", "ingest_ready_s")
"""Prefixes of the metrics that are added up over the repeats."""


def measure_repeat(
    records: Sequence[Record],
    ingests: Sequence[Ingest],
    headline: Headline = None,
    *,
    imported: bool = False,
) -> Metrics:
    """Metrics of one repeat; categories outside the headline don't count towards `accuracy`.

    The spending of another program on `imported` answers is unknown.
    """
    main = _counted(records, headline)
    metrics = _means(records, headline)
    for name, rows in _by_category_name(records).items():
        metrics[f"n_questions/{name}"] = float(len(rows))
    for (facet, value), rows in _by_facet(records).items():
        metrics[f"n_questions/{facet}/{value}"] = float(len(rows))

    # Under `stages=retrieve`, a question is complete without a score.
    metrics["coverage"] = mean(row.score is not None or is_retrieved(row) for row in records)
    metrics |= _judge_rates(records)
    metrics["accuracy_worst_case"], metrics["accuracy_best_case"] = _accuracy_bounds(main)
    metrics["n_questions"], metrics["n_records"] = float(len(main)), float(len(records))
    # One share over all chunks: a mean of shares would weigh short and long cases equally.
    health = total_health(ingests)
    metrics["ingest_lost"] = health.lost_share if health.asked else None
    metrics |= measure_spending(records, ingests) | measure_times(records, ingests)
    if imported:
        metrics |= dict.fromkeys(UNKNOWN_IF_IMPORTED)

    metrics |= measure_tools(records, ingests) | measure_operations(ingests)
    return metrics | _stored_figures(ingests)


def _stored_figures(ingests: Iterable[Ingest]) -> Metrics:
    """The figures of what was stored, in one repeat or in all."""
    rows = [
        (ingest.case_id, ingest.seed, ingest.row.stored) for ingest in ingests if ingest.row.stored
    ]
    return stored_measures(rows)


def _accuracy_bounds(records: Iterable[Record]) -> tuple[float | None, float | None]:
    """The accuracy if every unscored answer counts as 0, and as 1; None if none was requested."""
    scores, weights = [], []
    for record in records:
        if not is_retrieved(record):
            scores.append(record.score)
            weights.append(record.weight)

    return bounds(scores, weights) or (None, None)


def _means(records: Sequence[Record], headline: Headline) -> Metrics:
    """The means over questions, each averaged over its repeats first."""
    main = _counted(records, headline)
    averaged = [metric for metric in all_metrics().values() if metric.has_mean]
    of_categories = [metric for metric in averaged if not metric.all_categories]
    metrics: Metrics = {metric.name: mean_of(metric, main) for metric in of_categories}
    for name, rows in _by_category_name(records).items():
        for metric in of_categories:
            metrics[f"{metric.name}/{name}"] = mean_of(metric, rows)

    metrics["accuracy_macro"] = mean(metrics[f"accuracy/{name}"] for name in category_names(main))
    for (facet, value), rows in _by_facet(records).items():
        for metric in main_metrics():
            metrics[f"{metric.name}/{facet}/{value}"] = mean_of(metric, rows)

    metrics["abstention_rate"] = _refusal_rate([record for record in main if record.answerable])
    if unanswerable := [record for record in records if not record.answerable]:
        metrics["abstention_rate/unanswerable"] = _refusal_rate(unanswerable)

    for metric in averaged:
        if metric.all_categories:
            metrics[metric.name] = mean_of(metric, records)

    metrics |= _retrieval(records) | _retrieval_by_category(records)
    return metrics | _tool_use(records) | life_measures(records)


def measure_cell(
    repeats: Sequence[Metrics],
    records: Sequence[Record],
    headline: Headline = None,
    ingests: Sequence[Ingest] = (),
) -> Metrics:
    """Metrics of a cell: means and deviations over repeats, clustered intervals, sums."""
    metrics: Metrics = {}
    # A metric may be missing in a repeat, so no single repeat has them all.
    for name in dict.fromkeys(chain.from_iterable(repeats)):
        column = [repeat.get(name) for repeat in repeats]
        metrics[name] = sum_or_none(column) if name.startswith(_SUMS) else mean(column)

    # By question: one without a score in a repeat would otherwise weigh less than in a comparison.
    if len(repeats) > 1:
        metrics |= _means(records, headline) | _stored_figures(ingests)

    of_categories = [name for name in metrics if name.startswith("accuracy/")]
    of_all = [metric.name for metric in main_metrics()]
    for name in ("accuracy_macro", *of_categories, *of_all):
        head, slash, tail = name.partition("/")
        metrics[f"{head}_std{slash}{tail}"] = sample_std(repeat.get(name) for repeat in repeats)

    low, high, effect = interval_of(_counted(records, headline))
    return metrics | {"accuracy_ci95_low": low, "accuracy_ci95_high": high, "design_effect": effect}


def interval_of(records: Sequence[Record]) -> tuple[float | None, float | None, float | None]:
    """95 % interval of the accuracy (questions averaged, clustered by case) and design effect."""
    # Repeats of a question are not independent of each other: they count as one value.
    scores: dict[str, list[float | None]] = {}
    clusters, weights = [], []
    for record in records:
        if record.question_id not in scores:
            scores[record.question_id] = []
            clusters.append(record.case_id)
            weights.append(record.weight)

        scores[record.question_id].append(record.score)

    values = list(map(mean, scores.values()))
    result = scored_mean(values, clusters, weights)
    if result is None:
        return None, None, None

    return result.low, result.high, design_effect(values, clusters, weights)


def measure_categories(
    records: Sequence[Record], repeats: Sequence[Metrics], headline: Headline = None
) -> tuple[CategoryResult, ...]:
    """A row per category, headline ones first, in the order of their ids."""
    rows: dict[CategoryId, list[Record]] = {}
    for record in records:
        rows.setdefault(record.category, []).append(record)

    ids = sorted(rows, key=lambda category: natural_order(str(category)))
    ids.sort(key=lambda category: not in_headline(headline, rows[category][0]))
    results = []
    for category in ids:
        of_category = rows[category]
        name, counts = of_category[0].category_name, in_headline(headline, of_category[0])
        results.append(_result(of_category, repeats, str(category), name, counts))

    return tuple(results)


def measure_facets(
    records: Sequence[Record], repeats: Sequence[Metrics]
) -> dict[str, tuple[CategoryResult, ...]]:
    """A row per value of each facet, by facet."""
    results: dict[str, tuple[CategoryResult, ...]] = {}
    for (facet, value), rows in _by_facet(records).items():
        result = _result(rows, repeats, value, f"{facet}/{value}", True)
        results[facet] = (*results.get(facet, ()), result)

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
        accuracy=_mean_of(rows, lambda record: record.score),
        accuracy_std=sample_std(repeat.get(f"accuracy/{name}") for repeat in repeats),
        ci95_low=low,
        ci95_high=high,
        token_f1=_mean_of(rows, lambda record: record.metrics.get("token_f1")),
    )


def _by_category_name(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of each category, in the order of the categories' ids."""
    rows: dict[str, list[Record]] = {}
    # As strings: the ids of a data set may be numbers and words, which can't be compared.
    for record in sorted(records, key=lambda record: (str(record.category), record.category_name)):
        rows.setdefault(record.category_name, []).append(record)

    return rows


def _by_facet(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """The records of each value of each facet, in the natural order of both."""
    rows: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        for facet, value in record.facets.items():
            rows.setdefault((facet, value), []).append(record)

    return dict(sorted(rows.items(), key=lambda group: [*map(natural_order, group[0])]))


def in_headline(headline: Headline, asked: Record | EvalQuestion) -> bool:
    """Whether a question counts towards the accuracy."""
    return headline is None or asked.category in headline


def _counted(records: Iterable[Record], headline: Headline) -> list[Record]:
    return [record for record in records if in_headline(headline, record)]


def main_metrics() -> list[Metric]:
    """The metrics that are also reported by facet, and with their deviation over repeats."""
    return [metric for metric in all_metrics().values() if metric.is_main]


def category_names(records: Iterable[Record]) -> list[str]:
    """Names of the categories among the records, in the order of their ids."""
    names = dict(sorted((str(record.category), record.category_name) for record in records))
    # Several categories may share a name: their questions are one group.
    return list(dict.fromkeys(names.values()))


def _mean_of(records: Iterable[Record], value: Callable[[Record], float | None]) -> float | None:
    """Mean of a figure over the questions, weighted by how many questions each represents."""
    rows = list(records)
    return _mean_by_question(rows, map(value, rows))


def _mean_by_question(records: Sequence[Record], values: Iterable[float | None]) -> float | None:
    """Mean over questions of their means over repeats, as in a comparison."""
    columns: dict[str, list[float | None]] = {}
    weights: dict[str, float] = {}
    # With one repeat, a question's mean is its value: most runs have one, and compute fifty means.
    if len({record.question_id for record in records}) == len(records):
        own_weights = [record.weight for record in records]
        if set(own_weights) == {1.0}:
            return mean(values)

        return mean(values, own_weights)

    for record, value in zip(records, values, strict=True):
        columns.setdefault(record.question_id, []).append(value)
        weights[record.question_id] = record.weight

    return mean(map(mean, columns.values()), list(weights.values()))


def mean_of(metric: Metric, records: Iterable[Record]) -> float | None:
    """Mean of a metric over the questions of some records."""
    return _mean_of(records, metric.of_question)


def _judge_rates(records: Sequence[Record]) -> Metrics:
    """Share of verdicts that could not be read, and of repeated verdicts that are unanimous."""
    unparsed, unanimous = [], []
    for record in records:
        if record.verdict is not None:
            unparsed.append(record.verdict.label is Label.UNSCORED)
            if record.verdict.votes:
                unanimous.append(len(set(record.verdict.votes)) == 1)

    metrics: Metrics = {"unparsed_rate": mean(unparsed)}
    if unanimous:
        metrics["judge_unanimous"] = mean(unanimous)

    return metrics


def _refusal_rate(records: Sequence[Record]) -> float | None:
    """Share of refusals among the answers in words; answers that choose options are not counted."""
    answers = [record for record in records if record.is_whole and not record.choices]
    if not answers:
        return None

    from memeval.metrics.refusal import is_refusal

    return _mean_of(answers, lambda record: float(is_refusal(record.hypothesis or "")))


def _tool_use(records: Sequence[Record]) -> Metrics:
    """Means of the use of tools over all questions; those that were not measured are left out."""
    of_questions = [metric for metric in OF_TOOLS if metric.is_of_questions]
    means = {metric.name: mean_of(metric, records) for metric in of_questions}
    return {name: value for name, value in means.items() if value is not None}


def _retrieval(records: Sequence[Record]) -> Metrics:
    """Means over all questions with evidence; nothing for systems without a ranking."""
    ranked = [record for record in records if record.evidence_ranks]
    rows = list(map(retrieval_of, ranked))
    if not rows:
        return {}

    return {name: _mean_by_question(ranked, map(itemgetter(name), rows)) for name in rows[0]}


def is_retrieved(record: Record) -> bool:
    """Whether a question ended after its retrieval, as under `stages=retrieve`."""
    return record.status is Status.RETRIEVED


def _retrieval_by_category(records: Sequence[Record]) -> Metrics:
    """Retrieval metrics of each category under `stages=retrieve`, without session metrics."""
    if not any(map(is_retrieved, records)):
        return {}

    metrics: Metrics = {}
    for category, rows in _by_category_name(records).items():
        for name, value in _retrieval(rows).items():
            if "session_" not in name:
                metrics[f"{name}/{category}"] = value

    return metrics


def total_health(ingests: Iterable[Ingest]) -> IngestHealth:
    """The chunks of all cases that were ingested, stored and lost."""
    asked = stored = lost = 0
    for ingest in ingests:
        if ingest.row.health is not None:
            asked += ingest.row.health.asked
            stored += ingest.row.health.stored
            lost += ingest.row.health.lost

    return IngestHealth(asked=asked, stored=stored, lost=lost)


def found_nothing(records: Sequence[Record], ingests: Sequence[Ingest]) -> bool:
    """Whether a memory that reports its results found nothing at all: figures are meaningless."""
    if not any(ingest.row.chunks for ingest in ingests):
        return False

    asked = [record for record in records if record.status.is_complete]
    return bool(asked) and all(map(_has_no_context, asked))


def _has_no_context(record: Record) -> bool:
    """Whether no text of the memory reached the reader."""
    if record.retrieved:
        # Chunks without text. A system that doesn't use the reader may report any context.
        is_read = record.context is not None or is_retrieved(record)
        return is_read and not record.steps and record.context_tokens == 0

    is_empty = not record.context_tokens
    # A tool's message that it found nothing counts as tokens, but not as a text.
    if record.steps:
        is_empty = record.context in (None, NO_TEXT)

    return record.retrieved == () and is_empty


def statuses(records: Iterable[Record]) -> dict[Status, int]:
    """Number of records by status, in the order of `Status`."""
    counts = Counter(record.status for record in records)
    return {status: counts[status] for status in Status if status in counts}
