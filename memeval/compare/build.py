"""Compares finished runs: pairs, refusals, differences, adjusted p and letters."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from memeval.compare.finding import FinishedRun
from memeval.compare.metric import Metric, unknown_metric
from memeval.compare.protocol import judge_identity, reasons_against
from memeval.compare.records import (
    SIGNIFICANT,
    CaseDifference,
    CategoryDifference,
    ComparedRun,
    Comparison,
    Difference,
    Refusal,
)
from memeval.compare.scores import RunScores, ScoreReader
from memeval.errors import UserError
from memeval.report.differences import differing, labels, shown
from memeval.report.figures import corrected, flags
from memeval.results import RunSummary
from memeval.results.calibration import NOTE_BEGINS
from memeval.shown import one_line
from memeval.statistics.clusters import cluster_sums, clustered_mean
from memeval.statistics.flips import flip_and_max_t_ps, max_t_ps
from memeval.statistics.means import mean
from memeval.statistics.multiple import compact_letters
from memeval.statistics.proportions import mcnemar_p

MOST_LETTERED = 20
"""Runs beyond which letters are left out: they rest on all pairs."""

Pair = tuple[int, int]
"""Positions of two runs, the second of which is subtracted."""


def compare_runs(
    runs: Sequence[FinishedRun],
    metric: Metric,
    *,
    baseline: int = 0,
    all_pairs: bool = False,
    force: bool = False,
) -> Comparison:
    """Compares runs with the one at position `baseline`, or all with all.

    What may not be compared becomes a `Refusal`, unless `force`. Raises `UserError` where records
    can't be read, and for a metric that no run has.
    """
    reader = ScoreReader(metric)
    scores = [reader.read(run) for run in runs]
    if runs and not any(own.values for own in scores):
        raise unknown_metric(metric.name, frozenset().union(*(own.metrics for own in scores)))

    others = [number for number in range(len(runs)) if number != baseline]
    pairs = (
        list(combinations(range(len(runs)), 2)) if all_pairs else [(n, baseline) for n in others]
    )
    kept: dict[Pair, tuple[str, ...]] = {}
    refusals = []

    for first, second in pairs:
        reasons = reasons_against(
            (runs[first].summary, scores[first]), (runs[second].summary, scores[second]), metric
        )
        if reasons and not (force and all(reason.forcible for reason in reasons)):
            refusals.append(
                Refusal(
                    first=runs[first].key,
                    second=runs[second].key,
                    kinds=tuple(reason.kind for reason in reasons),
                    reasons=tuple(reason.text for reason in reasons),
                )
            )
        else:
            kept[first, second] = tuple(reason.text for reason in reasons)

    differences = [
        _difference(runs[first].key, runs[second].key, scores[first], scores[second])
        for first, second in kept
    ]
    differences = _with_ps(differences, kept, scores)
    letters = _letters(sorted({number for pair in kept for number in pair}), scores)
    compared = [
        replace(run, letters=letters.get(number, ""))
        for number, run in enumerate(_compared_runs([run.summary for run in runs], scores))
    ]

    return Comparison(
        metric=metric.name,
        unit=metric.unit,
        scale=metric.scale,
        baseline=None if all_pairs or not runs else runs[baseline].key,
        runs=tuple(compared),
        differences=tuple(differences),
        refusals=tuple(refusals),
        questions=_questions(scores),
        values={run.key: own.values for run, own in zip(runs, scores, strict=True)},
    )


def _compared_runs(
    summaries: Sequence[RunSummary], scores: Sequence[RunScores]
) -> list[ComparedRun]:
    columns, names = differing(summaries), _distinct(labels(summaries), summaries)
    compared = []
    for summary, own, label in zip(summaries, scores, names, strict=True):
        get = summary.metrics.get
        run = ComparedRun(
            key=summary.run_key,
            name=one_line(summary.name),
            label=label,
            sweep=summary.sweep,
            dataset=summary.dataset,
            judge=one_line(judge_identity(summary).shown),
            settings={name: one_line(shown(summary, name)) for name in columns},
            flags=tuple(flags(summary)),
            asked=len(own.questions),
            result=clustered_mean(
                list(own.values.values()), _cases(own, own.values), _weights(own, own.values)
            ),
            rerun_std=own.std,
            repeats=own.repeats,
            coverage=get("coverage"),
            cost_usd=get("cost_usd_uncached/total", get("cost_usd/total")),
            context_tokens=get("context_tokens"),
            latency_ms=get("latency_ms/answer/p50"),
            corrected=corrected_words(summary),
        )
        compared.append(run)

    return compared


def corrected_words(summary: RunSummary) -> str:
    """The corrected accuracy and which labels it rests on; empty where there is none."""
    text = corrected(summary)
    if not text:
        return ""

    notes = [note for note in summary.notes if note.startswith(NOTE_BEGINS)]
    return " ".join([text, *(f"({note.removeprefix(NOTE_BEGINS).rstrip('.')})" for note in notes)])


def _distinct(names: Sequence[str], summaries: Sequence[RunSummary]) -> list[str]:
    """Labels that name one run each: a key is added where two would be the same."""
    return [
        f"{name} {summary.run_key[:6]}" if names.count(name) > 1 else name
        for name, summary in zip(names, summaries, strict=True)
    ]


def _cases(scores: RunScores, questions: Iterable[str]) -> list[str]:
    """The conversation of each question."""
    return [scores.questions[question].case_id for question in questions]


def _weights(scores: RunScores, questions: Iterable[str]) -> list[float]:
    """How many questions each question stands for."""
    return [scores.questions[question].weight for question in questions]


def _questions(scores: Sequence[RunScores]) -> dict[str, dict[str, str]]:
    questions: dict[str, dict[str, str]] = {}
    for own in scores:
        for name, asked in own.questions.items():
            if name not in questions:
                questions[name] = {"case": asked.case_id, "category": asked.category_name}

    return questions


def _difference(key: str, other_key: str, scores: RunScores, other: RunScores) -> Difference:
    """One run minus another, without p."""
    common = [question for question in scores.values if question in other.values]
    values = [scores.values[question] for question in common]
    subtracted = [other.values[question] for question in common]
    deltas = [value - less for value, less in zip(values, subtracted, strict=True)]

    result = clustered_mean(deltas, _cases(scores, common), _weights(scores, common))
    if result is None:
        raise UserError("no question in common")

    first_alone = second_alone = None
    if {*values, *subtracted} <= {0.0, 1.0}:
        first_alone = sum(delta > 0 for delta in deltas)
        second_alone = sum(delta < 0 for delta in deltas)

    return Difference(
        first=key,
        second=other_key,
        only_first=len(scores.values) - len(common),
        only_second=len(other.values) - len(common),
        result=result,
        p=None,
        adjusted_p=None,
        first_alone=first_alone,
        second_alone=second_alone,
        mcnemar_p=(
            None
            if first_alone is None or second_alone is None
            else mcnemar_p(first_alone, second_alone)
        ),
        categories=_by_category(scores, common, deltas),
        cases=_by_case(scores, common, deltas),
    )


def _by_category(
    scores: RunScores, common: Sequence[str], deltas: Sequence[float]
) -> tuple[CategoryDifference, ...]:
    # Within a category all weights of a sample are equal.
    rows: dict[str, tuple[list[float], list[str]]] = {}
    for question, delta in zip(common, deltas, strict=True):
        asked = scores.questions[question]
        values, cases = rows.setdefault(asked.category_name, ([], []))
        values.append(delta)
        cases.append(asked.case_id)

    order = {asked.category_name: asked.category for asked in scores.questions.values()}
    differences = []
    for name in sorted(rows, key=lambda name: order[name]):
        result = clustered_mean(*rows[name])
        if result is not None:
            differences.append(CategoryDifference(name, result))

    return tuple(differences)


def _by_case(
    scores: RunScores, common: Sequence[str], deltas: Sequence[float]
) -> tuple[CaseDifference, ...]:
    rows: dict[str, list[float]] = {}
    for question, delta in zip(common, deltas, strict=True):
        rows.setdefault(scores.questions[question].case_id, []).append(delta)

    return tuple(
        CaseDifference(case_id, len(values), sum(values) / len(values))
        for case_id, values in rows.items()
    )


def _with_ps(
    differences: Sequence[Difference],
    kept: dict[Pair, tuple[str, ...]],
    scores: Sequence[RunScores],
) -> list[Difference]:
    """The differences with p, adjusted together, and with what was forced."""
    ps, adjusted = flip_and_max_t_ps(_sums(list(kept), scores))
    tested = []
    for difference, reasons, p, adjusted_p in zip(
        differences, kept.values(), ps, adjusted, strict=True
    ):
        has_p = difference.result.groups > 1
        tested.append(
            replace(
                difference,
                p=p if has_p else None,
                adjusted_p=adjusted_p if has_p else None,
                forced=reasons,
            )
        )

    return tested


def _letters(numbers: Sequence[int], scores: Sequence[RunScores]) -> dict[int, str]:
    """Letters of the runs at these positions, from all their pairs, adjusted together.

    The best run gets the first letter.
    """
    means = {
        number: mean(
            scores[number].values.values(), _weights(scores[number], scores[number].values)
        )
        or 0.0
        for number in numbers
    }
    ranked = sorted(numbers, key=lambda number: -means[number])
    if not 1 < len(ranked) <= MOST_LETTERED:
        return {}

    pairs = list(combinations(range(len(ranked)), 2))
    adjusted = max_t_ps(_sums([(ranked[one], ranked[other]) for one, other in pairs], scores))
    different = [pair for pair, p in zip(pairs, adjusted, strict=True) if p <= SIGNIFICANT]
    letters = compact_letters(len(ranked), different)

    return dict(zip(ranked, letters, strict=True))


def _sums(pairs: Sequence[Pair], scores: Sequence[RunScores]) -> list[list[float]]:
    """Σ d_i of each conversation, for each pair, the conversations in one order for all."""
    rows: list[dict[Hashable, float]] = []
    own_sums = [
        cluster_sums(
            list(own.values.values()),
            _cases(own, own.values),
            weights=_weights(own, own.values),
        )
        for own in scores
    ]
    for first, second in pairs:
        values, other = scores[first].values, scores[second].values
        weights = _weights(scores[first], values)
        is_aligned = values.keys() == other.keys()
        if is_aligned and weights == _weights(
            scores[second], values
        ):  # sums of differences are differences of sums
            less = own_sums[second]
            rows.append({case: total - less[case] for case, total in own_sums[first].items()})
            continue

        common = [question for question in values if question in other]
        deltas = [values[question] - other[question] for question in common]
        rows.append(
            cluster_sums(
                deltas, _cases(scores[first], common), weights=_weights(scores[first], common)
            )
        )

    cases = list(dict.fromkeys(case for row in rows for case in row))
    return [[row.get(case, 0.0) for case in cases] for row in rows]
