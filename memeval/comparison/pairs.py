"""One run minus another, on the questions that both scored."""

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from memeval.comparison.records import CaseDifference, CategoryDifference, Difference
from memeval.comparison.scores import (
    RunScores,
    cases_of,
    deltas_of,
    difference_on,
    weights_of,
)
from memeval.statistics.clusters import cluster_sums
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

    `names` are the keys of both, `titles` the names of the categories to compare by their id, and
    `most` is the largest possible difference.
    """
    common = scores.common(other)
    changes = deltas_of(scores.values, other.values, common)
    # There are some: see `protocol`.
    result = difference_on(common, scores, scores.values, other.values, most=most)
    first_alone = second_alone = mcnemar = None
    # Only for values that are right or wrong: an average of repeats is neither.
    values = {*map(scores.values.get, common), *map(other.values.get, common)}
    if values <= {0.0, 1.0}:
        first_alone, second_alone = changes.count(1.0), changes.count(-1.0)
        mcnemar = mcnemar_p(first_alone, second_alone)

    return Difference(
        first=names[0],
        second=names[1],
        only_first=len(scores.values) - len(common),
        only_second=len(other.values) - len(common),
        result=result,
        adjusted_p=result.p,
        first_alone=first_alone,
        second_alone=second_alone,
        mcnemar_p=mcnemar,
        categories=tuple(_by_category(scores, other, titles, most)),
        cases=tuple(_by_case(scores, dict(zip(common, changes, strict=True)))),
        forced=forced,
    )


def same_values(scores: RunScores, other: RunScores) -> bool:
    """Whether no question has a different value in the two runs."""
    common = scores.common(other)
    return all(scores.values[question] == other.values[question] for question in common)


def _by_category(
    scores: RunScores, other: RunScores, titles: Mapping[str, str], most: float | None
) -> Iterator[CategoryDifference]:
    groups = scores.grouped("category", scores.common(other)) if titles else {}
    # Categories come in the order of the data set, not in that of the first questions.
    for category in sorted(groups, key=natural_order):
        names = groups[category]
        result = difference_on(names, scores, scores.values, other.values, most=most)
        # Described, not tested: among many categories one always has a small p.
        yield CategoryDifference(titles[category], replace(result, p=None))


def _by_case(scores: RunScores, deltas: Mapping[str, float]) -> Iterator[CaseDifference]:
    cases, weights = cases_of(scores, deltas), weights_of(scores, deltas)
    sums = cluster_sums(list(deltas.values()), cases, weights=weights)
    sizes = cluster_sums(weights, cases)
    for case_id, count in Counter(cases).items():
        yield CaseDifference(case_id, count, sums[case_id] / sizes[case_id])
