"""Compares finished runs: pairs, refusals, differences, adjusted p and letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from memeval.comparison.finding import FinishedRun
from memeval.comparison.pairs import difference_between, same_values
from memeval.comparison.protocol import reasons_against
from memeval.comparison.records import Comparison, Refusal
from memeval.comparison.runs import compared_runs
from memeval.comparison.scores import RunScores, ScoreReader
from memeval.comparison.sent import SentReader
from memeval.comparison.significance import Pair, adjusted, letters_of
from memeval.metrics.metric import Metric
from memeval.metrics.registry import unknown_metric
from memeval.report.categories import category_titles


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
    scores = _read_scores(runs, metric)
    pairs = list(combinations(range(len(runs)), 2)) if all_pairs else _with(baseline, len(runs))
    kept, refusals = _admit(pairs, runs, scores, metric, force=force)
    # By id and not by name: runs may name their categories differently.
    titles = {
        category: title
        for (_, category), title in category_titles(
            ("", asked.category, asked.category_name)
            for own in scores
            for asked in own.questions.values()
        ).items()
    }
    sent = SentReader()
    differences = {}
    for (first, second), forced in kept.items():
        own, other = scores[first], scores[second]
        difference = difference_between(
            (runs[first].key, runs[second].key),
            own,
            other,
            titles=titles,
            most=metric.unit.most,
            forced=forced,
        )
        if same_values(own, other):
            common = [question for question in own.values if question in other.values]
            alike = sent.count_alike(runs[first], runs[second], common)
            why = sent.describe_edges(runs[first], runs[second]) if alike else ""
            difference = replace(difference, sent_alike=alike, why_alike=why)

        differences[first, second] = difference

    def may_be_compared(first: int, second: int) -> bool:
        return not _admit([(first, second)], runs, scores, metric, force=force)[1]

    differences = adjusted(differences, scores)
    letters = letters_of(differences, scores, may_be_compared)
    compared = compared_runs([run.summary for run in runs], scores, metric)

    return Comparison(
        metric=metric.name,
        unit=metric.unit.name,
        scale=metric.unit.scale,
        baseline=None if all_pairs or not runs else runs[baseline].key,
        runs=tuple(
            replace(run, letters=letters.get(number, "")) for number, run in enumerate(compared)
        ),
        differences=tuple(differences.values()),
        refusals=tuple(refusals),
        questions=_questions(scores),
        values={run.key: own.values for run, own in zip(runs, scores, strict=True)},
    )


def _read_scores(runs: Sequence[FinishedRun], metric: Metric) -> list[RunScores]:
    # One reader for all: the lines of a question begin alike in every run.
    reader = ScoreReader(metric)
    scores = [reader.read(run) for run in runs]
    if runs and not any(own.values for own in scores):
        raise unknown_metric(metric.name, frozenset().union(*(own.metrics for own in scores)))

    return scores


def _with(baseline: int, count: int) -> list[Pair]:
    """The pairs of each run with the baseline."""
    return [(number, baseline) for number in range(count) if number != baseline]


def _admit(
    pairs: Sequence[Pair],
    runs: Sequence[FinishedRun],
    scores: Sequence[RunScores],
    metric: Metric,
    *,
    force: bool,
) -> tuple[dict[Pair, tuple[str, ...]], list[Refusal]]:
    """The pairs that are compared, each with what was forced; and those that are not."""
    kept: dict[Pair, tuple[str, ...]] = {}
    refusals = []

    for first, second in pairs:
        reasons = reasons_against(
            (runs[first].summary, scores[first]), (runs[second].summary, scores[second]), metric
        )
        texts = tuple(reason.text for reason in reasons)
        if not reasons or (force and all(reason.forcible for reason in reasons)):
            kept[first, second] = texts
            continue

        refusals.append(
            Refusal(
                first=runs[first].key,
                second=runs[second].key,
                kinds=tuple(reason.kind for reason in reasons),
                reasons=texts,
            )
        )

    return kept, refusals


def _questions(scores: Sequence[RunScores]) -> dict[str, dict[str, str]]:
    """Conversation and category of each question, in the order in which runs asked them."""
    questions: dict[str, dict[str, str]] = {}
    for own in scores:
        for name, asked in own.questions.items():
            questions.setdefault(name, {"case": asked.case_id, "category": asked.category_name})

    return questions
