"""Corrects an accuracy with labels of other answers: a range over kinds of wrong answer."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memeval.calibration.injection import INJECTED
from memeval.calibration.items import RIGHT, ordered_kinds
from memeval.calibration.label_file import LabelRow, raise_problems
from memeval.calibration.scored import AnswerKey, JudgedAnswer, by_key, scored_answers
from memeval.errors import UserError
from memeval.results import JudgeIdentity, is_same_judge, judge_shown
from memeval.results.calibration import RANGE, Calibration, KindRange
from memeval.results.run import Run
from memeval.statistics.clusters import effective_count
from memeval.statistics.judge_error import JudgeRates, rogan_gladen
from memeval.text.shown import one_line

WRONG = "wrong"
"""The kind used for wrong answers if a file does not state one."""
UNNAMED = "an unnamed judge"


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
    answers: dict[str, dict[AnswerKey, JudgedAnswer]] = {}
    labelled, problems = [], []
    seen: set[tuple[str, AnswerKey]] = set()
    for row in rows:
        verdict, other = row.verdict, others.get(row.run)
        if other is not None:
            if row.run not in answers:
                answers[row.run] = by_key(scored_answers(other))
            verdict = _verdict_on(answers[row.run].get(row.key), row)

        # Rates of another judge, or of the same model with another prompt, can't correct this run.
        if other_judge := _other_judge(row, other, judge):
            raise UserError(
                f"{one_line(path)}: {row.where}: judged by {one_line(other_judge)}, but the run "
                f"was judged by {one_line(judge_shown(judge)) or UNNAMED}",
                "labels only correct the judge that gave the verdicts",
            )

        if verdict is None:
            problems.append(f"{row.where}: neither the row nor a finished run has a verdict")
        elif row.run and (row.run, row.key) in seen:
            # For example in merged files: counting a label twice would narrow the interval.
            problems.append(f"{row.where}: '{one_line(row.question_id, 80)}' is labelled twice")
        else:
            seen.add((row.run, row.key))
            # Right answers may be called `right`, as by the probe: no kind of wrong answer.
            kind = WRONG if row.kind == RIGHT else row.kind or WRONG
            labelled.append(JudgedLabel(kind, bool(row.label), verdict))

    raise_problems(path, problems)
    return labelled


def _verdict_on(answer: JudgedAnswer | None, row: LabelRow) -> bool | None:
    """The verdict on the answer that a row is about; None if the run has a different one now."""
    if answer is not None and row.answer_id in ("", answer.answer_id):
        return answer.right

    return None


def _other_judge(row: LabelRow, other: Run | None, judge: JudgeIdentity | None) -> str | None:
    """The judge of the run that a row names, or that it names itself; None if it is `judge`."""
    if other is not None:
        if is_same_judge(other.summary.judge, judge):
            return None

        return judge_shown(other.summary.judge) or UNNAMED

    if judge is None or not judge.is_named:
        return row.judge or UNNAMED

    is_same = row.judge_key == judge.digest
    if not row.judge_key:  # a file that a person wrote names the judge as tables do
        is_same = row.judge == one_line(judge.shown)

    return None if is_same else row.judge or row.judge_key or UNNAMED


def by_other_labels(
    uncorrected: Calibration,
    path: Path,
    answers: Sequence[JudgedAnswer],
    labelled: Sequence[JudgedLabel],
) -> Calibration:
    """A range: the accuracy if all wrong answers were of one kind, for each kind.

    Attacks are not a kind of answer that a run gives: the number of flipped verdicts is kept
    separately.
    """
    right, wrong, attacks = _verdicts_on(labelled)
    if not right or not wrong:
        missing = "wrong" if right else "right"
        raise UserError(
            f"{one_line(path)} has no labels of {missing} answers",
            "label both right and wrong answers: a judge can err on both",
        )

    raw, count = uncorrected.raw, _count_questions(answers)
    ranges = [_range_of(kind, right, wrong[kind], raw, count) for kind in ordered_kinds(wrong)]
    return replace(
        uncorrected,
        method=RANGE,
        labels=len(labelled) - len(attacks),
        low=min(part.low for part in ranges),
        high=max(part.high for part in ranges),
        right_kept=sum(right),
        right_labels=len(right),
        kinds=tuple(ranges),
        flipped=sum(attacks) if attacks else None,
        attacks=len(attacks) or None,
    )


def _verdicts_on(
    labelled: Sequence[JudgedLabel],
) -> tuple[list[bool], dict[str, list[bool]], list[bool]]:
    """The verdicts on right answers, on each kind of wrong ones, and on attacks."""
    right, attacks = [], []
    wrong: dict[str, list[bool]] = {}
    for label in labelled:
        if label.kind == INJECTED:
            attacks.append(label.verdict)
        elif label.label:
            right.append(label.verdict)
        else:
            wrong.setdefault(label.kind, []).append(label.verdict)

    return right, wrong, attacks


def _count_questions(answers: Sequence[JudgedAnswer]) -> float:
    """The effective number of questions; repeats of a question count as one."""
    weights: dict[str, float] = defaultdict(float)
    for answer in answers:
        weights[answer.question_id] += answer.weight

    return effective_count(list(weights.values()))


def _range_of(
    kind: str, right: Sequence[bool], wrong: Sequence[bool], raw: float, count: float
) -> KindRange:
    """The interval of one kind; all of [0, 1] if the judge takes this kind for right answers, or
    if its rates contradict the run's verdicts.
    """
    caught = wrong.count(False)
    rates = JudgeRates(
        right_kept=sum(right) / len(right),
        right_labels=len(right),
        wrong_caught=caught / len(wrong),
        wrong_labels=len(wrong),
    )
    share, low, high = None, 0.0, 1.0
    try:
        corrected = rogan_gladen(raw, count, rates)
        # Otherwise the whole interval was outside [0, 1]: the judge called more answers right than
        # its rates allow, or fewer. Clipped, it would claim certainty.
        if corrected.low < corrected.high:
            share = corrected.share
            # Few labels move the interval away from the rates that the share rests on.
            low, high = min(corrected.low, share), max(corrected.high, share)
    except ValueError:
        pass  # no better than chance on this kind: its verdicts give no bound

    return KindRange(kind, caught, labels=len(wrong), share=share, low=low, high=high)
