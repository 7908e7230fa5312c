"""Corrects an accuracy with labels of the run's own answers: PPI++."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from memeval.calibration.label_file import LabelRow, raise_problems
from memeval.calibration.scored import AnswerKey, JudgedAnswer, clusters_of, weights_of
from memeval.calibration.source import LabelSource
from memeval.errors import UserError
from memeval.results.calibration import LABELS, PPI, Calibration
from memeval.statistics.clusters import CONFIDENCE, clustered_mean
from memeval.statistics.judge_error import CorrectedMean, prediction_powered_mean
from memeval.statistics.proportions import Z95
from memeval.statistics.student import quantile
from memeval.text.shown import one_line

FEWEST = 2
"""Fewest labels from which an error can be computed."""


def by_own_labels(
    source: LabelSource, answers: Sequence[JudgedAnswer], rows: Sequence[LabelRow]
) -> Calibration:
    labels = _match(source.path, answers, rows)
    if len(labels) < FEWEST:
        raise UserError(
            f"{one_line(source.path)} has only one label: an error estimate needs at least two",
            f"label about 100:  python -m memeval label {source.run.key} --n 100",
        )

    # Answers of one conversation are not independent.
    clusters = clusters_of(answers)
    groups = None if clusters is None else len(set(clusters))
    if groups == 1:  # the answers of a single conversation say nothing about others
        clusters = groups = None
    if len(labels) == len(answers):
        return _by_labels_only(source, answers, labels, clusters)

    corrected = _correct_by_ppi(answers, labels, clusters)
    return source.calibration(
        PPI,
        len(labels),
        accuracy=corrected.mean,
        bounds=_interval(corrected.mean, corrected.se, groups),
        se=corrected.se,
        power=corrected.power,
        groups=groups,
    )


def _match(
    path: Path, answers: Sequence[JudgedAnswer], rows: Sequence[LabelRow]
) -> dict[AnswerKey, bool]:
    """The labels by answer.

    Raises `UserError` with a line for each row on an answer that the run does not have, and for
    each repeated row on an answer.
    """
    by_key = {answer.key: answer for answer in answers}
    labels: dict[AnswerKey, bool] = {}
    problems = []
    for row in rows:
        answer, name = by_key.get(row.key), one_line(row.question_id, 80)
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
    answers: Sequence[JudgedAnswer],
    labels: Mapping[AnswerKey, bool],
    clusters: Sequence[str] | None,
) -> CorrectedMean:
    """PPI++ on the labelled answers and the others."""
    labelled = [number for number, answer in enumerate(answers) if answer.key in labels]
    others = [number for number, answer in enumerate(answers) if answer.key not in labels]

    return prediction_powered_mean(
        [float(labels[answers[number].key]) for number in labelled],
        [float(bool(answers[number].right)) for number in labelled],
        [float(bool(answers[number].right)) for number in others],
        clusters=None if clusters is None else [clusters[number] for number in labelled],
        unlabelled_clusters=None if clusters is None else [clusters[number] for number in others],
        weights=[answers[number].weight for number in labelled],
        unlabelled_weights=[answers[number].weight for number in others],
    )


def _by_labels_only(
    source: LabelSource,
    answers: Sequence[JudgedAnswer],
    labels: Mapping[AnswerKey, bool],
    clusters: Sequence[str] | None,
) -> Calibration:
    """The mean of the labels: if each answer has one, no judge is needed."""
    result = clustered_mean(
        [float(labels[answer.key]) for answer in answers],
        range(len(answers)) if clusters is None else clusters,
        weights_of(answers),
        is_share=True,
    )
    assert result is not None, "there are answers"

    return source.calibration(
        LABELS,
        len(answers),
        accuracy=result.mean,
        bounds=(result.low, result.high),
        se=result.se,
        groups=None if clusters is None else result.groups,
    )


def _interval(mean: float, se: float, groups: int | None) -> tuple[float | None, float | None]:
    """95 % interval; none if the error is 0, which does not prove certainty."""
    # Few labels can agree by chance: `± 0` would claim too much.
    if not se:
        return None, None

    factor = Z95 if groups is None else quantile(groups - 1, (1 + CONFIDENCE) / 2)
    return mean - factor * se, mean + factor * se
