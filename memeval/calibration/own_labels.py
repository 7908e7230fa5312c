"""Corrects an accuracy with labels of the run's own answers: PPI++."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from memeval.calibration.label_file import LabelRow, raise_problems
from memeval.calibration.scored import (
    QUESTION_OF,
    AnswerKey,
    Cluster,
    JudgedAnswer,
    by_key,
    cluster_of,
    verdicts_of,
    weights_of,
)
from memeval.errors import UserError
from memeval.results.calibration import LABELS, PPI, Calibration
from memeval.statistics.clusters import CONFIDENCE, clustered_mean
from memeval.statistics.judge_error import (
    CorrectedMean,
    JudgedAnswers,
    clipped,
    prediction_powered_mean,
)
from memeval.statistics.proportions import Z95
from memeval.statistics.student import quantile
from memeval.text.shown import one_line

FEWEST = 2
"""Fewest labels from which an error can be computed."""


def by_own_labels(
    uncorrected: Calibration, path: Path, answers: Sequence[JudgedAnswer], rows: Sequence[LabelRow]
) -> Calibration:
    labels = _match(path, answers, rows)
    if len(labels) < FEWEST:
        raise UserError(
            f"{one_line(path)} has only one label: an error estimate needs at least two",
            f"label about 100:  python -m memeval label {uncorrected.run_key} --n 100",
        )

    # Answers of one conversation are not independent.
    cluster = cluster_of(answers)
    groups = len(set(map(cluster, answers))) if cluster else None
    base = replace(uncorrected, labels=len(labels), groups=groups)
    if len(labels) == len(answers):
        return _by_labels_only(base, answers, labels, cluster)

    result = _correct_by_ppi(answers, labels, cluster)
    low, high = _interval(result.mean, result.se, groups)
    return replace(
        base,
        method=PPI,
        accuracy=clipped(result.mean),
        low=low,
        high=high,
        se=result.se,
        power=result.power,
    )


def _match(
    path: Path, answers: Sequence[JudgedAnswer], rows: Sequence[LabelRow]
) -> dict[AnswerKey, bool]:
    """The labels by answer.

    Raises `UserError` with a line for each row on an answer that the run does not have, and for
    each repeated row on an answer.
    """
    of_run = by_key(answers)
    labels: dict[AnswerKey, bool] = {}
    problems = []
    for row in rows:
        answer, name = of_run.get(row.key), one_line(row.question_id, 80)
        if answer is None:
            problems.append(f"{row.where}: the run has no scored answer to '{name}'")
        elif row.answer_id and row.answer_id != answer.answer_id:
            problems.append(f"{row.where}: the run now has a different answer to '{name}'")
        elif row.key in labels:
            problems.append(f"{row.where}: '{name}' is labelled twice")
        elif row.label is not None:
            labels[row.key] = row.label

    raise_problems(path, problems)
    return labels


def _correct_by_ppi(
    answers: Sequence[JudgedAnswer], labels: Mapping[AnswerKey, bool], cluster: Cluster | None
) -> CorrectedMean:
    """PPI++ on the labelled answers and the others."""
    values: list[float] = []
    labelled: list[JudgedAnswer] = []
    others: list[JudgedAnswer] = []
    for answer in answers:
        if answer.key in labels:
            values.append(float(labels[answer.key]))
            labelled.append(answer)
        else:
            others.append(answer)

    return prediction_powered_mean(values, _judged(labelled, cluster), _judged(others, cluster))


def _judged(answers: Sequence[JudgedAnswer], cluster: Cluster | None) -> JudgedAnswers:
    return JudgedAnswers(
        verdicts=verdicts_of(answers),
        weights=weights_of(answers),
        questions=list(map(QUESTION_OF, answers)),
        clusters=list(map(cluster, answers)) if cluster else None,
    )


def _by_labels_only(
    base: Calibration,
    answers: Sequence[JudgedAnswer],
    labels: Mapping[AnswerKey, bool],
    cluster: Cluster | None,
) -> Calibration:
    """The mean of the labels: if each answer has one, no judge is needed.

    Repeats of a question are averaged first, as in the accuracy.
    """
    repeats: dict[str, list[JudgedAnswer]] = {}
    for answer in answers:
        repeats.setdefault(answer.question_id, []).append(answer)

    clusters: Sequence[Hashable] = range(len(repeats))
    if cluster:
        clusters = [cluster(answered[0]) for answered in repeats.values()]

    values, weights = [], []
    for answered in repeats.values():
        values.append(sum(labels[answer.key] for answer in answered) / len(answered))
        weights.append(sum(weights_of(answered)))

    result = clustered_mean(values, clusters, weights, is_share=True)
    assert result is not None, "there are answers"

    return replace(
        base, method=LABELS, accuracy=result.mean, low=result.low, high=result.high, se=result.se
    )


def _interval(mean: float, se: float, groups: int | None) -> tuple[float | None, float | None]:
    """95 % interval; none if the error is 0, which does not prove certainty."""
    # Few labels can agree by chance: `± 0` would claim too much.
    if not se:
        return None, None

    factor = Z95 if groups is None else quantile(groups - 1, (1 + CONFIDENCE) / 2)
    return clipped(mean - factor * se), clipped(mean + factor * se)
