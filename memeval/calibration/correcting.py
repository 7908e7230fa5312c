"""Corrects a run's accuracy for its judge's errors, by labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memeval.calibration.items import RIGHT, ordered_kinds
from memeval.calibration.label_file import LabelRow, raise_problems, read_labels
from memeval.calibration.scored import AnswerKey, JudgedAnswer, clusters_of, scored_answers
from memeval.compare.finding import FinishedRun
from memeval.compare.protocol import judge_identity
from memeval.errors import UserError
from memeval.results import RECORDS_FILE
from memeval.results.calibration import LABELS, PPI, RANGE, Calibration, KindRange
from memeval.results.files import file_digest
from memeval.shown import one_line
from memeval.statistics.clusters import CONFIDENCE, clustered_se, independent_se
from memeval.statistics.judge_error import (
    CorrectedMean,
    JudgeRates,
    prediction_powered_mean,
    rogan_gladen,
)
from memeval.statistics.proportions import Z95
from memeval.statistics.student import quantile

FEWEST = 2
"""Labels below which no error can be given."""
WRONG = "wrong"
"""The kind of wrong answers of which a file does not say how they are wrong."""


@dataclass(frozen=True)
class _Source:
    """What all calibrations hold: the run and the file."""

    run: FinishedRun
    path: Path
    raw: float
    unlabelled: int

    def calibration(
        self,
        method: str,
        labels: int,
        *,
        accuracy: float | None,
        bounds: tuple[float | None, float | None],
        se: float | None = None,
        power: float | None = None,
        groups: int | None = None,
        right: tuple[int, int] | None = None,
        kinds: tuple[KindRange, ...] = (),
    ) -> Calibration:
        """The record; shares are clipped to [0, 1]."""
        low, high = bounds
        return Calibration(
            run_key=self.run.key,
            records=file_digest(self.run.folder / RECORDS_FILE),
            method=method,
            raw=self.raw,
            accuracy=_clipped(accuracy),
            low=_clipped(low),
            high=_clipped(high),
            labels=labels,
            unlabelled=self.unlabelled,
            file=self.path.name,
            sha256=file_digest(self.path),
            se=se,
            power=power,
            groups=groups,
            right_kept=right[0] if right else None,
            right_labels=right[1] if right else None,
            kinds=kinds,
        )


def calibrate_run(
    run: FinishedRun, path: Path, known: Sequence[FinishedRun], *, partial: bool = False
) -> Calibration:
    """The accuracy of a run, corrected by a file of labels.

    Labels of the run's own answers give PPI++, labels of other answers a range over kinds of wrong
    answer. `known` are the runs that rows may be about; `partial` takes a file in which rows have
    no label. Raises `UserError` for a file that does not fit, with a line per row.
    """
    answers = scored_answers(run)
    rows = read_labels(path)
    labelled = [row for row in rows if row.label is not None]
    unlabelled = len(rows) - len(labelled)
    if unlabelled and not partial:
        raise UserError(
            f"{one_line(path)} is half done: {unlabelled:,} of {len(rows):,} rows have no label",
            f"label the rest:  python -m memeval label {run.key} --terminal --out {one_line(path)}",
            "or use what there is, which every table says:  --partial",
        )

    raw = sum(bool(answer.right) for answer in answers) / len(answers)
    source = _Source(run=run, path=path, raw=raw, unlabelled=unlabelled)
    own = [row for row in labelled if row.run == run.key]
    if own and len(own) < len(labelled):
        raise UserError(
            f"{one_line(path)} mixes labels of run {one_line(run.key)} with labels of other "
            "answers",
            "calibrate by one kind at a time: they mean different things",
        )

    if own:
        return _by_own_labels(source, answers, own)

    return _by_other_labels(source, answers, _with_verdicts(run, path, labelled, known))


def _by_own_labels(
    source: _Source, answers: Sequence[JudgedAnswer], rows: Sequence[LabelRow]
) -> Calibration:
    labels = _match(source.path, answers, rows)
    if len(labels) < FEWEST:
        raise UserError(
            f"{one_line(source.path)} has one label: no error can be given",
            f"about 100 say something:  python -m memeval label {source.run.key} --n 100",
        )

    clusters = clusters_of(answers)
    groups = None if clusters is None else _groups(clusters, answers, labels)
    if len(labels) == len(answers):
        return _by_labels_alone(source, answers, labels, clusters if groups else None)

    corrected = _powered(answers, labels, clusters if groups else None)
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
    each second row on one.
    """
    by_key = {answer.key: answer for answer in answers}
    labels: dict[AnswerKey, bool] = {}
    problems = []
    for row in rows:
        answer, name = by_key.get(row.key), one_line(row.question_id, 80)
        if answer is None:
            problems.append(f"{row.place}: the run has no scored answer to '{name}'")
        elif row.answer_id and row.answer_id != answer.answer_id:
            problems.append(f"{row.place}: the run has another answer to '{name}' by now")
        elif row.key in labels:
            problems.append(f"{row.place}: '{name}' is labelled above")
        elif row.label is not None:
            labels[row.key] = row.label

    raise_problems(path, problems)
    return labels


def _groups(
    clusters: Sequence[str], answers: Sequence[JudgedAnswer], labels: Mapping[AnswerKey, bool]
) -> int | None:
    """Clusters that the labelled answers, and the others, come from: the fewer of the two.

    None where one of them has a single cluster, so that no clustered error can be given.
    """
    pairs = list(zip(answers, clusters, strict=True))
    labelled = {cluster for answer, cluster in pairs if answer.key in labels}
    others = {cluster for answer, cluster in pairs if answer.key not in labels}
    groups = min(len(labelled), len(others) or len(labelled))

    return groups if groups > 1 else None


def _powered(
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
    )


def _by_labels_alone(
    source: _Source,
    answers: Sequence[JudgedAnswer],
    labels: Mapping[AnswerKey, bool],
    clusters: Sequence[str] | None,
) -> Calibration:
    """Where each answer has a label no judge is needed."""
    values = [float(labels[answer.key]) for answer in answers]
    mean = sum(values) / len(values)
    se = independent_se(values) if clusters is None else clustered_se(values, clusters)
    groups = None if clusters is None else len(set(clusters))

    return source.calibration(
        LABELS,
        len(values),
        accuracy=mean,
        bounds=_interval(mean, se, groups),
        se=se,
        groups=groups,
    )


def _interval(
    mean: float, se: float | None, groups: int | None
) -> tuple[float | None, float | None]:
    """95 % interval; none where the error is 0, which is no proof of certainty."""
    if not se:
        return None, None

    factor = Z95 if groups is None else quantile(groups - 1, (1 + CONFIDENCE) / 2)
    return mean - factor * se, mean + factor * se


def _clipped(share: float | None) -> float | None:
    return None if share is None else min(max(share, 0.0), 1.0)


@dataclass(frozen=True)
class _Labelled:
    """A label of some other answer, and what the judge said of it."""

    kind: str
    label: bool
    verdict: bool


def _with_verdicts(
    run: FinishedRun, path: Path, rows: Sequence[LabelRow], known: Sequence[FinishedRun]
) -> list[_Labelled]:
    """The rows with the judge's verdicts: their own, or those of the run that they name.

    Raises `UserError` where a row has none, and where another judge gave it.
    """
    judge = one_line(judge_identity(run.summary).shown)
    others = {other.key: other for other in known}
    verdicts: dict[str, dict[AnswerKey, JudgedAnswer]] = {}
    labelled, problems = [], []
    for row in rows:
        verdict, judged_by = row.verdict, row.judge
        if row.run in others:
            other = others[row.run]
            judged_by = one_line(judge_identity(other.summary).shown)
            if row.run not in verdicts:
                verdicts[row.run] = {answer.key: answer for answer in scored_answers(other)}

            answer = verdicts[row.run].get(row.key)
            fits = answer is not None and row.answer_id in ("", answer.answer_id)
            verdict = answer.right if answer is not None and fits else None

        if judged_by and judged_by != judge:
            raise UserError(
                f"{row.place}: judged by {one_line(judged_by)}, the run by {judge}",
                "labels correct the judge that gave the verdicts, and no other",
            )

        if verdict is None:
            problems.append(f"{row.place}: no verdict, and no finished run that has one")
        else:
            kind = row.kind if row.kind and row.kind != RIGHT else WRONG
            labelled.append(_Labelled(kind, bool(row.label), verdict))

    raise_problems(path, problems)
    return labelled


def _by_other_labels(
    source: _Source, answers: Sequence[JudgedAnswer], labelled: Sequence[_Labelled]
) -> Calibration:
    """A range: what the accuracy would be if all wrong answers were of one kind, for each kind."""
    right = [one for one in labelled if one.label]
    kinds = ordered_kinds([one.kind for one in labelled if not one.label])
    if not right or not kinds:
        missing = "wrong" if right else "right"
        raise UserError(
            f"{one_line(source.path)} has no labels of {missing} answers",
            "a judge's error shows on right and on wrong answers: both are needed",
        )

    kept = sum(one.verdict for one in right)
    count = len({answer.question_id for answer in answers})
    ranges = []
    for kind in kinds:
        wrong = [one for one in labelled if not one.label and one.kind == kind]
        caught = sum(not one.verdict for one in wrong)
        rates = JudgeRates(
            right_kept=kept / len(right),
            right_labels=len(right),
            wrong_caught=caught / len(wrong),
            wrong_labels=len(wrong),
        )
        ranges.append(_range_of(kind, caught, rates, source.raw, count))

    return source.calibration(
        RANGE,
        len(labelled),
        accuracy=None,
        bounds=(min(one.low for one in ranges), max(one.high for one in ranges)),
        right=(kept, len(right)),
        kinds=tuple(ranges),
    )


def _range_of(kind: str, caught: int, rates: JudgeRates, raw: float, count: int) -> KindRange:
    """The interval of one kind; all of [0, 1] where the judge takes this kind for right answers."""
    share, low, high = None, 0.0, 1.0
    try:
        corrected = rogan_gladen(raw, count, rates)
        share, low, high = corrected.share, corrected.low, corrected.high
    except ValueError:
        pass  # no better than chance on this kind: its verdicts bound nothing

    return KindRange(
        kind=kind, caught=caught, labels=rates.wrong_labels, share=share, low=low, high=high
    )
