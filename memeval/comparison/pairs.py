"""One run minus another, on the questions that both scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from memeval.comparison.records import CaseDifference, CategoryDifference, Difference
from memeval.comparison.scores import RunScores, cases_of, weights_of
from memeval.errors import UserError
from memeval.statistics.clusters import weighted_mean
from memeval.statistics.differences import clustered_difference
from memeval.statistics.proportions import mcnemar_p
from memeval.text.shown import natural_order


def difference_between(
    names: tuple[str, str],
    scores: RunScores,
    other: RunScores,
    *,
    titles: Mapping[str, str],
    most: float | None,
    forced: tuple[str, ...],
) -> Difference:
    """One run minus another, with p not adjusted yet.

    `names` are the keys of both, `titles` the names of categories by their id, and `most` is the
    largest possible difference.
    """
    common = scores.common(other)
    values = [scores.values[question] for question in common]
    subtracted = [other.values[question] for question in common]
    deltas = [value - less for value, less in zip(values, subtracted, strict=True)]

    result = clustered_difference(
        deltas, cases_of(scores, common), weights_of(scores, common), most=most
    )
    if result is None:
        raise UserError("no question in common")

    # Only for values that are right or wrong: an average of repeats is neither.
    first_alone = second_alone = None
    if {*values, *subtracted} <= {0.0, 1.0}:
        first_alone = sum(delta > 0 for delta in deltas)
        second_alone = sum(delta < 0 for delta in deltas)

    return Difference(
        first=names[0],
        second=names[1],
        only_first=len(scores.values) - len(common),
        only_second=len(other.values) - len(common),
        result=result,
        adjusted_p=result.p,
        first_alone=first_alone,
        second_alone=second_alone,
        mcnemar_p=(
            None
            if first_alone is None or second_alone is None
            else mcnemar_p(first_alone, second_alone)
        ),
        categories=_by_category((scores, common), deltas, titles, most),
        cases=_by_case(scores, common, deltas),
        forced=forced,
    )


def same_values(scores: RunScores, other: RunScores) -> bool:
    """Whether no question has a different value in the two runs."""
    common = scores.common(other)
    return all(scores.values[question] == other.values[question] for question in common)


def _by_category(
    asked_by: tuple[RunScores, Sequence[str]],
    deltas: Sequence[float],
    titles: Mapping[str, str],
    most: float | None,
) -> tuple[CategoryDifference, ...]:
    # Within a category all weights of a sample are equal.
    scores, common = asked_by
    rows: dict[str, tuple[list[float], list[str]]] = {}
    for question, delta in zip(common, deltas, strict=True):
        asked = scores.questions[question]
        values, cases = rows.setdefault(asked.category, ([], []))
        values.append(delta)
        cases.append(asked.case_id)

    # Categories come in the order of the data set, not in that of the first questions.
    differences = []
    for category in sorted(rows, key=natural_order):
        result = clustered_difference(*rows[category], most=most)
        if result is not None:
            # Described, not tested: among many categories one always has a small p.
            differences.append(CategoryDifference(titles[category], replace(result, p=None)))

    return tuple(differences)


def _by_case(
    scores: RunScores, common: Sequence[str], deltas: Sequence[float]
) -> tuple[CaseDifference, ...]:
    rows: dict[str, tuple[list[float], list[float]]] = {}
    for question, delta in zip(common, deltas, strict=True):
        asked = scores.questions[question]
        values, weights = rows.setdefault(asked.case_id, ([], []))
        values.append(delta)
        weights.append(asked.weight)

    return tuple(
        CaseDifference(case_id, len(values), weighted_mean(values, weights))
        for case_id, (values, weights) in rows.items()
    )
