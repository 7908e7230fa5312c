"""One run minus another, on the questions that both scored."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.compare.records import CaseDifference, CategoryDifference, Difference
from memeval.compare.scores import RunScores, cases_of, weights_of
from memeval.errors import UserError
from memeval.statistics.clusters import clustered_mean
from memeval.statistics.proportions import mcnemar_p


def difference_between(key: str, other_key: str, scores: RunScores, other: RunScores) -> Difference:
    """One run minus another, without p."""
    common = [question for question in scores.values if question in other.values]
    values = [scores.values[question] for question in common]
    subtracted = [other.values[question] for question in common]
    deltas = [value - less for value, less in zip(values, subtracted, strict=True)]

    result = clustered_mean(deltas, cases_of(scores, common), weights_of(scores, common))
    if result is None:
        raise UserError("no question in common")

    # Only of values that are right or wrong: an average of repeats is neither.
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

    # Categories come in the order of the data set, not in that of the first questions.
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
