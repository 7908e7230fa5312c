"""Agreement of several judges on the same answers."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from msgspec import Struct

from memeval.calibration.scored import JudgedAnswer, read_answers
from memeval.errors import UserError
from memeval.report.differences import unique_labels
from memeval.results import judge_shown
from memeval.results.fields import as_plain
from memeval.results.run import Run
from memeval.results.summary import RunSummary
from memeval.statistics.agreement import krippendorff_alpha
from memeval.text.shown import one_line

UnitKey = tuple[str, int, str]
"""A question's id, a repeat, and the digest of its answer."""


class PairAgreement(Struct, frozen=True):
    """Two judges on the answers that both gave a verdict on."""

    first: int
    """Position of the first judge in `Agreement.judges`."""
    second: int
    both_right: int
    first_alone: int
    """Answers that only the first called right."""
    second_alone: int
    both_wrong: int
    alpha: float | None

    @property
    def count(self) -> int:
        return self.both_right + self.first_alone + self.second_alone + self.both_wrong


class Disagreement(Struct, frozen=True):
    """An answer on which judges differ."""

    question_id: str
    repeat: int
    verdicts: tuple[bool | None, ...]
    """One per judge: whether it called the answer right; None if it gave no verdict."""


class Agreement(Struct, frozen=True):
    """Several judges on the same answers."""

    judges: tuple[str, ...]
    runs: tuple[str, ...]
    """Run key of each judge."""
    answers: int
    """Answers with a verdict of two judges or more."""
    unshared: int
    """Answers with a verdict of only one judge: to other questions, or with other texts."""
    alpha: float | None
    pairs: tuple[PairAgreement, ...]
    differing: tuple[Disagreement, ...]
    left_out: tuple[str, ...] = ()
    """Keys of the runs without a verdict, such as those of `stages=retrieve`."""

    def to_json(self) -> dict[str, Any]:
        content = as_plain(self)
        for pair, agreement in zip(content["pairs"], self.pairs, strict=True):
            pair["count"] = agreement.count

        return content


def measure_agreement(runs: Sequence[Run]) -> Agreement:
    """Agreement of the judges of runs on the answers that the runs share.

    Runs without a verdict are left out. Raises `UserError` if fewer than two are left, if the runs
    have different data, or if no answer is shared.
    """
    answers, left_out = _read_judged(runs)
    summaries, judges = [], []
    for run in runs:
        if run.key in answers:
            summaries.append(run.summary)
            judges.append(one_line(judge_shown(run.summary.judge)))

    _check_same_data(summaries)
    units = _units(list(answers.values()))
    rows, differing = [], []
    for (question_id, repeat, _), verdicts in units.items():
        # An answer that only one judge scored is no evidence of agreement.
        if len(verdicts) - verdicts.count(None) > 1:
            rows.append(verdicts)
            if True in verdicts and False in verdicts:
                differing.append(Disagreement(question_id, repeat, tuple(verdicts)))

    if not rows:
        raise UserError(
            "no answer was judged in more than one of the runs",
            "judge the answers of one run again:  python -m memeval evaluate "
            "outputs/runs/KEY/hypotheses.jsonl dataset=NAME judge=NAME",
        )

    return Agreement(
        judges=tuple(unique_labels(judges, summaries)),
        runs=tuple(answers),
        answers=len(rows),
        unshared=len(units) - len(rows),
        alpha=krippendorff_alpha(rows),
        pairs=tuple(_pair(rows, *pair) for pair in combinations(range(len(answers)), 2)),
        differing=tuple(differing),
        left_out=tuple(left_out),
    )


def _check_same_data(summaries: Sequence[RunSummary]) -> None:
    names = {}
    for summary in summaries:
        names[summary.dataset, summary.data_sha256] = one_line(summary.dataset)

    if len(names) > 1:
        raise UserError(f"the runs have different data: {', '.join(dict.fromkeys(names.values()))}")


def _read_judged(runs: Sequence[Run]) -> tuple[dict[str, list[JudgedAnswer]], list[str]]:
    """The answers of the runs with a verdict, and the keys of the runs without one."""
    answers, left_out = {}, []
    for run in runs:
        answers[run.key] = read_answers(run)
        if all(answer.right is None for answer in answers[run.key]):
            del answers[run.key]
            left_out.append(run.key)

    if left_out and len(answers) < 2:
        raise UserError(
            f"judge agree needs two runs with verdicts, but these have none: {', '.join(left_out)}",
            "all runs of this home:  python -m memeval list",
        )

    return answers, left_out


def _units(of_runs: Sequence[Sequence[JudgedAnswer]]) -> dict[UnitKey, list[bool | None]]:
    """The verdicts on each answer, one per run; None if a run has no verdict."""
    units: dict[UnitKey, list[bool | None]] = {}
    for number, answers in enumerate(of_runs):
        for answer in answers:
            key = (answer.question_id, answer.repeat, answer.answer_id)
            units.setdefault(key, [None] * len(of_runs))[number] = answer.right

    return units


def _pair(rows: Sequence[Sequence[bool | None]], first: int, second: int) -> PairAgreement:
    pairs = [(row[first], row[second]) for row in rows]
    return PairAgreement(
        first=first,
        second=second,
        both_right=pairs.count((True, True)),
        first_alone=pairs.count((True, False)),
        second_alone=pairs.count((False, True)),
        both_wrong=pairs.count((False, False)),
        alpha=krippendorff_alpha(pairs),
    )
