"""Corrects an accuracy with labels of other answers: a range over kinds of wrong answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from memeval.calibration.injection import INJECTED
from memeval.calibration.items import RIGHT, ordered_kinds
from memeval.calibration.label_file import LabelRow, raise_problems
from memeval.calibration.scored import AnswerKey, JudgedAnswer, scored_answers
from memeval.calibration.source import LabelSource
from memeval.errors import UserError
from memeval.results import JudgeIdentity, is_same_judge, judge_shown
from memeval.results.calibration import RANGE, Calibration, KindRange
from memeval.results.run import Run
from memeval.statistics.clusters import effective_count
from memeval.statistics.judge_error import JudgeRates, rogan_gladen
from memeval.text.shown import one_line

WRONG = "wrong"
"""The kind used for wrong answers if a file does not state one."""


class JudgedLabel(Struct, frozen=True):
    """A label of another answer, and the judge's verdict on it."""

    kind: str
    label: bool
    verdict: bool


def with_verdicts(
    run: Run, path: Path, rows: Sequence[LabelRow], known: Sequence[Run]
) -> list[JudgedLabel]:
    """The rows with the judge's verdicts: their own, or those of the run that they name.

    Raises `UserError` if a row has no verdict, or if another judge gave it.
    """
    judge = run.summary.judge
    others = {other.key: other for other in known}
    verdicts: dict[str, dict[AnswerKey, JudgedAnswer]] = {}
    labelled, problems = [], []
    seen: set[tuple[str, AnswerKey]] = set()
    for row in rows:
        verdict, other_judge = row.verdict, _other_judge(row, judge)
        if row.run in others:
            other = others[row.run]
            other_judge = None
            if not is_same_judge(other.summary.judge, judge):
                other_judge = judge_shown(other.summary.judge) or "an unnamed judge"

            if row.run not in verdicts:
                verdicts[row.run] = {answer.key: answer for answer in scored_answers(other)}

            answer = verdicts[row.run].get(row.key)
            fits = answer is not None and row.answer_id in ("", answer.answer_id)
            verdict = answer.right if answer is not None and fits else None

        # Rates of another judge, or of the same model with another prompt, can't correct this run.
        if other_judge is not None:
            raise UserError(
                f"{row.where}: judged by {one_line(other_judge)}, but the run was judged by "
                f"{one_line(judge_shown(judge)) or 'an unnamed judge'}",
                "labels only correct the judge that gave the verdicts",
            )

        if verdict is None:
            problems.append(f"{row.where}: neither the row nor a finished run has a verdict")
        elif row.run and (row.run, row.key) in seen:
            # As in merged files: a label that counted twice would make the interval too narrow.
            problems.append(f"{row.where}: '{one_line(row.question_id, 80)}' is labelled twice")
        else:
            seen.add((row.run, row.key))
            # A file may call its right answers `right`, as the probe does: that is not a kind of
            # wrong answer.
            kind = row.kind if row.kind and row.kind != RIGHT else WRONG
            labelled.append(JudgedLabel(kind, bool(row.label), verdict))

    raise_problems(path, problems)
    return labelled


def _other_judge(row: LabelRow, judge: JudgeIdentity | None) -> str | None:
    """The judge that a row names, if it is not the run's judge."""
    if judge is None or not judge.is_named:
        return row.judge or "an unnamed judge"
    if row.judge_key:
        return None if row.judge_key == judge.digest else row.judge or row.judge_key

    # A file that a person wrote names the judge as tables do.
    return None if row.judge == one_line(judge.shown) else row.judge or "an unnamed judge"


def by_other_labels(
    source: LabelSource, answers: Sequence[JudgedAnswer], labelled: Sequence[JudgedLabel]
) -> Calibration:
    """A range: the accuracy if all wrong answers were of one kind, for each kind.

    Attacks are not a kind of answer that a run gives: the number of flipped verdicts is kept
    separately.
    """
    attacks = [label.verdict for label in labelled if label.kind == INJECTED]
    labelled = [label for label in labelled if label.kind != INJECTED]
    right = [label for label in labelled if label.label]
    kinds = ordered_kinds([label.kind for label in labelled if not label.label])
    if not right or not kinds:
        missing = "wrong" if right else "right"
        raise UserError(
            f"{one_line(source.path)} has no labels of {missing} answers",
            "label both right and wrong answers: a judge can err on both",
        )

    kept = sum(label.verdict for label in right)
    # Repeats of a question count as one question.
    weights: dict[str, float] = {}
    for answer in answers:
        weights[answer.question_id] = weights.get(answer.question_id, 0.0) + answer.weight

    count = effective_count(list(weights.values()))
    ranges = []
    for kind in kinds:
        wrong = [label for label in labelled if not label.label and label.kind == kind]
        caught = sum(not label.verdict for label in wrong)
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
        bounds=(min(part.low for part in ranges), max(part.high for part in ranges)),
        right=(kept, len(right)),
        kinds=tuple(ranges),
        flips=(sum(attacks), len(attacks)) if attacks else None,
    )


def _range_of(kind: str, caught: int, rates: JudgeRates, raw: float, count: float) -> KindRange:
    """The interval of one kind; all of [0, 1] if the judge takes this kind for right answers, or
    if its rates contradict the run's verdicts.
    """
    share, low, high = None, 0.0, 1.0
    try:
        corrected = rogan_gladen(raw, count, rates)
        # Otherwise the whole interval was outside [0, 1]: the judge called more answers right than
        # its rates allow, or fewer. Clipped, it would claim certainty.
        if corrected.low < corrected.high:
            share, low, high = corrected.share, corrected.low, corrected.high
    except ValueError:
        pass  # no better than chance on this kind: its verdicts bound nothing

    return KindRange(
        kind=kind, caught=caught, labels=rates.wrong_labels, share=share, low=low, high=high
    )
